package queue

import (
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/kvlog"
)

// burials are the dead letters being written. The group's lock guards them.
type burials struct {
	begun, ended uint64
	waits        []burialWait
	// dones are those who wait for the dead letter of an offset.
	dones map[uint64][]Done
}

// A burialWait wants to hear when as many have ended as had begun.
type burialWait struct {
	begun uint64
	done  Done
}

// bury writes the dead letter of a record whose burial the tracker has begun.
// The record is finished when that is on disk; done hears when its finish is.
func (g *group) bury(offset uint64, done Done) {
	b := &g.burials
	if b.dones == nil {
		b.dones = make(map[uint64][]Done)
	}
	b.begun++
	b.dones[offset] = nil
	g.awaitBurial(offset, done)
	g.push(&write{
		letter: true,
		Write:  kvlog.Write{Key: recordKey(g.name, offset)},
		ended:  func(err error) { g.buried(offset, err) },
	})
}

func (g *group) buryAll(offsets []uint64) {
	for _, offset := range offsets {
		g.bury(offset, nil)
	}
}

// awaitBurial has done answered with the burial of a record, if there is one
// under way.
func (g *group) awaitBurial(offset uint64, done Done) bool {
	dones, buried := g.burials.dones[offset]
	if buried && done != nil {
		g.burials.dones[offset] = append(dones, done)
	}
	return buried
}

// buried is the end of the write of a dead letter.
func (g *group) buried(offset uint64, err error) {
	done := together(g.burials.dones[offset])
	delete(g.burials.dones, offset)
	settled, retract := g.tracker.Buried(offset, err == nil)
	if err == nil {
		g.letters.put(offset, false)
	}
	switch {
	case err != nil:
		if settled.Redriven {
			g.finishRedriven(offset, nil)
		}
		g.finished(offset, settled)
		g.outbox.answer(done, err)
	case retract: // it was acked meanwhile
		g.dropLetter(offset, nil)
		g.finished(offset, settled)
		g.outbox.answer(done, &tracker.InvalidError{Offset: offset, Detail: "already finished"})
	case offset >= g.tracker.Committed():
		g.shard.store.count.deadLettered.Add(1)
		g.dig(offset, done)
	default:
		g.shard.store.count.deadLettered.Add(1)
		if settled.Counted && offset >= g.cursor.durable.committed {
			settled.Counted = false // it goes when the position is on disk
			g.graves.add(offset)
		}
		g.finished(offset, settled)
		g.awaitFinish(offset, done)
	}
	_, tail := g.shard.src.Bounds()
	g.wake(tail) // there is room for one more, or the record is owed
	b := &g.burials
	b.ended++
	waits := b.waits[:0]
	for _, w := range b.waits {
		if w.begun <= b.ended {
			g.outbox.answer(w.done, nil)
		} else {
			waits = append(waits, w)
		}
	}
	clear(b.waits[len(waits):])
	b.waits = waits
}

// awaitBurials has done answered when the dead letters being written now have
// ended.
func (g *group) awaitBurials(done Done) {
	b := &g.burials
	if b.ended == b.begun {
		g.outbox.answer(done, nil)
		return
	}
	b.waits = append(b.waits, burialWait{b.begun, done})
}

// dropLetter removes a letter of the log; ended, if not nil, runs with the
// group's lock held.
func (g *group) dropLetter(offset uint64, ended func(err error)) {
	g.push(&write{
		letter: true,
		Write:  kvlog.Write{Op: kvlog.Delete, Key: recordKey(g.name, offset)},
		ended: func(err error) {
			if err == nil {
				g.letters.remove(offset)
			}
			if ended != nil {
				ended(err)
			}
		},
	})
}

// all is a Done that tells several.
type all []Done

func together(dones []Done) Done {
	switch len(dones) {
	case 0:
		return nil
	case 1:
		return dones[0]
	}
	return all(dones)
}

func (a all) Settled(err error) {
	for _, done := range a {
		done.Settled(err)
	}
}
