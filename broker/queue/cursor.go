package queue

import "github.com/felixlog/felix/storage/kvlog"

// A cursor is the group's mark on disk. One write is in flight at a time, and
// what moves meanwhile shares the next. The group's lock guards it.
type cursor struct {
	durable mark
	exists  bool // there is a mark on disk
	writing bool
	flying  mark // being written
	// current wait for the mark in flight, next for the one after it.
	current, next []need
}

// A need is who waits for the mark to reach a position.
type need struct {
	committed, handed uint64
	done              Done
}

func (n *need) met(m mark) bool { return n.committed <= m.committed && n.handed <= m.handed }

// wanted is the mark that should be on disk.
func (g *group) wanted() mark {
	committed := g.tracker.Committed()
	return mark{
		has:       g.cursor.durable.has || committed > g.cursor.durable.committed,
		committed: committed,
		handed:    max(g.tracker.Handed(), committed),
	}
}

// marked says that the mark on disk is the one that should be there.
func (g *group) marked() bool {
	want := g.wanted()
	return want == g.cursor.durable || !g.cursor.exists && want == mark{}
}

// mark writes the mark if it should be another and none is in flight.
func (g *group) mark() {
	c := &g.cursor
	if c.writing || g.ended != nil && len(c.next) == 0 || g.marked() && len(c.next) == 0 {
		return
	}
	c.writing, c.flying = true, g.wanted()
	c.current, c.next = c.next, c.current[:0]
	g.shard.store.count.marks.Add(1)
	g.push(&write{
		Write: kvlog.Write{Key: []byte(g.name), Value: c.flying.append(nil)},
		ended: g.wroteMark,
	})
}

// wroteMark is the end of a write of the mark. After a failure the next move,
// or the next who waits, writes again.
func (g *group) wroteMark(err error) {
	c := &g.cursor
	c.writing = false
	if err == nil {
		c.durable, c.exists = c.flying, true
		g.tracker.Marked()
		g.closeGraves(c.durable.committed)
	}
	for i := range c.current {
		g.outbox.answer(c.current[i].done, err)
		c.current[i] = need{}
	}
	c.current = c.current[:0]
	if err == nil || len(c.next) > 0 {
		g.mark()
	}
}

// await has done answered when the mark on disk is as far as n says.
func (g *group) await(n need) {
	c := &g.cursor
	switch {
	case c.exists && n.met(c.durable):
		g.outbox.answer(n.done, nil)
	case c.writing && n.met(c.flying):
		c.current = append(c.current, n)
	default:
		c.next = append(c.next, n)
		g.mark()
	}
}

// awaitFinish has done answered when it is durable that a record is finished,
// as far as the cursor says so: not before a gap is closed that it lies behind.
func (g *group) awaitFinish(offset uint64, done Done) {
	if done == nil {
		return
	}
	if offset >= g.tracker.Committed() {
		g.outbox.answer(done, nil)
		return
	}
	g.await(need{committed: offset + 1, done: done})
}
