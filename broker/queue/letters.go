package queue

import (
	"maps"
	"slices"
)

// letters are the dead letters of a group as the log has them. The group's lock
// guards them.
type letters struct {
	dead []uint64 // given up, ascending
	// redriven are back in play; true: finished, and the key has yet to go.
	redriven map[uint64]bool
	// changing is closed when a change by hand, or of a redriven record's end,
	// is over.
	changing map[uint64]chan struct{}
}

func (l *letters) init() {
	l.dead, l.redriven, l.changing = nil, make(map[uint64]bool), make(map[uint64]chan struct{})
}

// put takes in a key of the log.
func (l *letters) put(offset uint64, isRedriven bool) {
	if isRedriven {
		l.remove(offset)
		l.redriven[offset] = false
		return
	}
	delete(l.redriven, offset)
	if i, there := slices.BinarySearch(l.dead, offset); !there {
		l.dead = slices.Insert(l.dead, i, offset)
	}
}

// remove takes in that a key is gone.
func (l *letters) remove(offset uint64) {
	delete(l.redriven, offset)
	if i, there := slices.BinarySearch(l.dead, offset); there {
		l.dead = slices.Delete(l.dead, i, i+1)
	}
}

func (l *letters) isDead(offset uint64) bool {
	_, there := slices.BinarySearch(l.dead, offset)
	return there
}

func (l *letters) isRedriven(offset uint64) bool {
	_, there := l.redriven[offset]
	return there
}

// owesRemoval says that a redriven record is finished and its key not gone.
func (l *letters) owesRemoval(offset uint64) bool { return l.redriven[offset] }

func (l *letters) redrivenOffsets() []uint64 { return slices.Sorted(maps.Keys(l.redriven)) }

// change marks that a letter is being changed, until over is called with the
// lock held.
func (l *letters) change(offset uint64) (over func()) {
	done := make(chan struct{})
	l.changing[offset] = done
	return func() {
		if l.changing[offset] == done {
			delete(l.changing, offset)
		}
		close(done)
	}
}
