package demo

import (
	"errors"
	"time"

	"github.com/felixlog/felix/client"
)

// A Queue is what the group has done so far.
type Queue struct {
	// Finished counts the records that a worker has finished, Worked the
	// strong ones among them, of Strong there are.
	Finished, Worked, Strong int
	// Claims counts what was handed to a worker, Redelivered the claims that
	// were not the first of their record.
	Claims, Redelivered int
	// Last is the strong quake finished last.
	Last Quake
	// Killed says that a worker was killed, with Held claims, of which Back
	// came back to another one, the last after BackAfter.
	Killed     bool
	Held, Back int
	BackAfter  time.Duration
	Poison     Poison
}

// A Poison is the record that the workers fail on.
type Poison struct {
	Quake
	Offset uint64
	// Attempts is how often a worker failed.
	Attempts int
	// GivenUp says that the group has put it to its dead letters, Redriven
	// that it was put back in play, and Worked that a worker finished it then.
	GivenUp, Redriven, Worked bool
}

// A queue is what the demo keeps of the group.
type queue struct {
	Queue
	strong map[uint64]Quake // by offset, which is the place in the feed
	seen   map[uint64]bool  // handed to a worker
	done   map[uint64]bool  // finished by a worker

	holding  bool // a worker sits on a claim
	ready    map[string]bool
	mended   bool
	killedAt time.Time
	held     map[uint64]uint32 // the claims of the killed worker, with their attempts
	others   map[uint64]uint32 // the most attempts with which other workers had a record

	safe        bool // the cursor has passed what the killed worker had
	letters     int  // in the dead letters when the record was given up
	maxAttempts uint32
	end         client.GroupInfo
	over        bool // nothing more will be done
}

// newQueue finds the work in the feed. The poison is the last strong quake of
// its first half, so that its attempts lie on both sides of the broker's kill.
func newQueue(quakes []Quake) (queue, error) {
	q := queue{
		strong: make(map[uint64]Quake), seen: make(map[uint64]bool), done: make(map[uint64]bool),
		ready: make(map[string]bool), others: make(map[uint64]uint32),
	}
	found := false
	for i, quake := range quakes {
		if quake.Mag < Strong {
			continue
		}
		q.strong[uint64(i)] = quake
		if i < len(quakes)/2 {
			q.Poison, found = Poison{Quake: quake, Offset: uint64(i)}, true
		}
	}
	if !found {
		return queue{}, errors.New("no quake of the first half is strong enough for the group to have work")
	}
	q.Strong = len(q.strong)
	return q, nil
}

// note takes what a worker says it did.
func (q *queue) note(worker string, said deed, now time.Time, timing *timing) {
	switch said.Did {
	case didReady:
		q.ready[worker] = true
		return
	case didMend:
		q.mended = true
		return
	case didFail:
		q.Poison.Attempts++
		return
	case didWork:
		q.finish(said.Offset)
		return
	case didHold:
		q.holding = true
	}
	// The others begin with a claim.
	q.Claims++
	if said.Attempts > 1 {
		q.Redelivered++
	}
	if !q.seen[said.Offset] && said.Offset < uint64(len(timing.sent)) {
		q.seen[said.Offset] = true
		timing.claimed = append(timing.claimed, now.Sub(timing.sent[said.Offset]))
	}
	if worker != doomed {
		q.others[said.Offset] = max(q.others[said.Offset], said.Attempts)
		q.countBack(now)
	}
	if said.Did == didPass {
		q.finish(said.Offset)
	}
}

// finish notes a record that a worker is done with.
func (q *queue) finish(offset uint64) {
	if offset == q.Poison.Offset && q.Poison.Redriven {
		q.Poison.Worked = true
	}
	if q.done[offset] {
		return
	}
	q.done[offset] = true
	q.Finished++
	if quake, strong := q.strong[offset]; strong {
		q.Worked++
		q.Last = quake
	}
}

// killed notes that the doomed worker is gone. Of the claims it had a moment
// before, those it said it had finished may not come back.
func (q *queue) killed(had map[uint64]uint32, at, now time.Time) {
	q.held = had
	for offset := range q.held {
		if q.done[offset] {
			delete(q.held, offset)
		}
	}
	q.Killed, q.killedAt, q.Held = true, at, len(q.held)
	q.countBack(now)
}

// countBack counts the claims of the killed worker that another one has got.
func (q *queue) countBack(now time.Time) {
	if !q.Killed || q.Back == q.Held {
		return
	}
	q.Back = 0
	for offset, attempts := range q.held {
		if q.others[offset] > attempts {
			q.Back++
		}
	}
	if q.Back == q.Held {
		q.BackAfter = now.Sub(q.killedAt)
	}
}

// recovered says that a worker was killed and all it held has come back.
func (q *queue) recovered() bool { return q.Killed && q.Back == q.Held }

// atEnd says that the group has finished the log, of so many records.
func (q *queue) atEnd(records int) bool {
	return q.end.HasCommitted && q.end.Committed == q.end.Tail && q.end.Tail == uint64(records) &&
		q.end.InFlight == 0 && q.end.Owed == 0
}

// passing says that an error may be gone if the call is made again.
func passing(err error) bool { return client.IsRetryable(err) || client.IsOutcomeUnknown(err) }
