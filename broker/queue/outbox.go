package queue

import (
	"sync/atomic"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage/kvlog"
)

// An outbox is the writes of a group that were decided under its lock and not
// issued yet, and the answers not given yet. Whoever leaves the lock and finds
// nobody issuing does so, for all: writes of one group reach the logs in the
// order in which they were decided. The group's lock guards it.
type outbox struct {
	queue   []*write
	issuing bool
	answers []answer
	// pending counts the writes from the decision to their end.
	pending int
	idle    chan struct{} // closed when pending falls to zero; nil without asker
}

// A Done hears once how a request ended, and must not block. If it is a
// [keyed.Flusher] too and the request did not end on the goroutine that asked,
// its Flush follows: of a round of commits once for a run of completions, else
// at once.
type Done interface {
	Settled(err error)
}

type answer struct {
	done Done
	err  error
}

// answer has done told when the lock is left.
func (o *outbox) answer(done Done, err error) {
	if done != nil {
		o.answers = append(o.answers, answer{done, err})
	}
}

func (o *outbox) takeAnswers() []answer {
	answers := o.answers
	o.answers = nil
	return answers
}

// claim says that the caller is to issue what is queued.
func (o *outbox) claim() bool {
	if o.issuing || len(o.queue) == 0 {
		return false
	}
	o.issuing = true
	return true
}

// settled is closed when no write is pending; nil if that is so.
func (o *outbox) settled() <-chan struct{} {
	if o.pending == 0 {
		return nil
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	return o.idle
}

// A teller gives answers from the goroutine it was made for.
type teller struct {
	own   Done         // of the request this goroutine makes: it flushes itself
	round *keyed.Round // on the committer's goroutine, which flushes after the round
}

func (t teller) tell(answers []answer) {
	for _, a := range answers {
		a.done.Settled(a.err)
		switch f, ok := a.done.(keyed.Flusher); {
		case !ok || a.done == t.own:
		case t.round != nil:
			t.round.Add(a.done)
		default:
			f.Flush()
		}
	}
}

// A write is one change of the group's logs.
type write struct {
	group *group
	// letter: to the dead letters, else to the log of the groups.
	letter bool
	kvlog.Write
	// ended runs with the group's lock held.
	ended func(err error)
	// result is valid when phase says so.
	phase atomic.Uint32
	err   error
}

// Phases of a write: on whose goroutine it ends.
const (
	// calling: the issuer is still in the call.
	calling uint32 = iota
	// returned: it has returned, the committer completes.
	returned
	// answered: the outcome came first, the issuer completes.
	answered
)

// push decides a write.
func (g *group) push(w *write) {
	w.group = g
	g.outbox.queue = append(g.outbox.queue, w)
	g.outbox.pending++
}

// issue hands what is queued to the logs; the outbox was claimed.
func (g *group) issue(to teller) {
	for {
		g.mu.Lock()
		queue := g.outbox.queue
		g.outbox.queue = nil
		if len(queue) == 0 {
			g.outbox.issuing = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		for _, w := range queue {
			w.issue(to)
		}
	}
}

func (w *write) issue(to teller) {
	part := &w.group.shard.marks
	if w.letter {
		part = &w.group.shard.letters
	}
	// A group is built over logs that are open.
	part.Opened().Index.Write(w.Write, w)
	if !w.phase.CompareAndSwap(calling, returned) {
		w.complete(to)
	}
}

// Written hears from kvlog.
func (w *write) Written(_ kvlog.Result, err error) {
	w.err = err
	if w.phase.CompareAndSwap(calling, answered) {
		return
	}
	part := &w.group.shard.marks
	if w.letter {
		part = &w.group.shard.letters
	}
	w.complete(teller{round: &part.Round})
}

// complete says what the end of the write means.
func (w *write) complete(to teller) {
	g := w.group
	err := g.shard.outcome(w.err)
	g.mu.Lock()
	w.ended(err)
	o := &g.outbox
	if o.pending--; o.pending == 0 && o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
	g.leave(to)
}
