package queue

import "slices"

// graves are the dead letters that the position on disk has not passed. Nothing
// but their counts in the log would keep them from being handed out again when
// the group is built anew: of those ahead of a gap it says that they are given up,
// of the others that they were handed out often enough. A seek removes the counts,
// and so hands them out again. The group's lock guards them.
type graves []uint64 // ascending

func (gs *graves) add(offset uint64) {
	if i, there := slices.BinarySearch(*gs, offset); !there {
		*gs = slices.Insert(*gs, i, offset)
	}
}

func (gs *graves) holds(offset uint64) bool {
	_, there := slices.BinarySearch(*gs, offset)
	return there
}

func (gs *graves) remove(offset uint64) bool {
	i, there := slices.BinarySearch(*gs, offset)
	if there {
		*gs = slices.Delete(*gs, i, i+1)
	}
	return there
}

// dig records that a dead letter ahead of a gap is finished; done hears when that
// is on disk.
func (g *group) dig(offset uint64, done Done) {
	g.graves.add(offset)
	g.putCount(offset, givenUp, func(err error) { g.outbox.answer(done, err) })
}

// closeGraves removes what the position on disk makes needless.
func (g *group) closeGraves(committed uint64) {
	n, _ := slices.BinarySearch(g.graves, committed)
	for _, offset := range g.graves[:n] {
		g.dropCount(offset)
	}
	g.graves = slices.Delete(g.graves, 0, n)
}
