package queue

import "github.com/felixlog/felix/storage/kvlog"

// putCount writes how often a record was handed out.
func (g *group) putCount(offset uint64, attempts uint32, ended func(err error)) {
	g.push(&write{
		Write: kvlog.Write{Key: recordKey(g.name, offset), Value: appendCount(nil, attempts)},
		ended: ended,
	})
}

// dropCount removes a count that nobody needs any more. One that stays is
// ignored when the group is built, and removed then.
func (g *group) dropCount(offset uint64) { g.removeCount(offset, func(error) {}) }

func (g *group) removeCount(offset uint64, ended func(err error)) {
	g.push(&write{
		Write: kvlog.Write{Op: kvlog.Delete, Key: recordKey(g.name, offset)},
		ended: ended,
	})
}

// correctCount writes the count of a hand-out that did not happen, down from
// attempts. Of a record that is not redriven a single one is told by the
// position.
func (g *group) correctCount(offset uint64, attempts uint32) {
	if attempts > 2 || attempts == 2 && g.letters.isRedriven(offset) {
		g.putCount(offset, attempts-1, func(error) {})
	} else {
		g.dropCount(offset)
	}
}
