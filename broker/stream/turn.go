package stream

import "sync"

// maxPending bounds the batches of one shard that are in the log's hands or
// wait for their turn. The byte budgets of admission bound their payloads;
// this bounds what many small ones cost beside them.
const maxPending = 8192

// A Turn is one batch between its append to the log and its answer. It is
// linked into its shard's turns while it waits.
type Turn struct {
	Task TurnTask
	next *Turn
}

// A TurnTask applies a committed batch and answers it.
type TurnTask interface {
	// Take runs when the batch's turn has come. It reports whether the batch
	// waits for a full queue under [Block]; then [Shard.Resume] goes on.
	Take() (waiting bool)
}

// A Flusher sends the answers it was given since the last time. It must not
// block.
type Flusher interface{ Flush() }

// turns keep what is committed in offset order up to the answer. The log's
// committer brings batches in that order and is never held: a batch that waits
// for a subscriber keeps those behind it in a list.
type turns struct {
	mu         sync.Mutex
	head, tail *Turn
	// taking says that somebody takes turns, or that the one taken waits.
	taking bool
	// pending counts the batches from reservation to answer.
	pending int
	// lane waits for pending to fall; at most the one job that holds it.
	lane Waiter
	idle chan struct{} // closed when pending falls to zero; nil without asker
	// flushers have got answers in this round.
	flushers []Flusher
}

// reserve takes a place among the pending batches of d, whose turns they are,
// once its log is open. Without a place, w hears when to try again.
func (t *turns) reserve(d *durable, w Waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending >= maxPending || d.current.Load() == nil {
		t.lane = w
		return false
	}
	t.pending++
	return true
}

// goOn lets the job that waits try again.
func (t *turns) goOn() {
	t.mu.Lock()
	w := t.lane
	t.lane = nil
	t.mu.Unlock()
	if w != nil {
		w.Settled()
	}
}

// count is how many batches are pending.
func (t *turns) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending
}

// done gives n places back.
func (t *turns) done(n int) {
	t.mu.Lock()
	t.pending -= n
	var w Waiter
	if t.pending <= maxPending/2 {
		w, t.lane = t.lane, nil
	}
	if t.pending == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
	t.mu.Unlock()
	if w != nil {
		w.Settled()
	}
}

// push queues a committed batch and, unless somebody does already, takes
// turns until none is left or one waits.
func (t *turns) push(turn *Turn) {
	t.mu.Lock()
	turn.next = nil
	if t.tail == nil {
		t.head = turn
	} else {
		t.tail.next = turn
	}
	t.tail = turn
	if t.taking {
		t.mu.Unlock()
		return
	}
	t.taking = true
	t.mu.Unlock()
	t.take()
}

// take is for who set taking.
func (t *turns) take() {
	for {
		t.mu.Lock()
		turn := t.head
		if turn == nil {
			t.taking = false
			t.mu.Unlock()
			return
		}
		t.head = turn.next
		if t.head == nil {
			t.tail = nil
		}
		turn.next = nil
		t.mu.Unlock()
		if turn.Task.Take() {
			return
		}
		t.done(1)
	}
}

// resume goes on behind a batch that waited and is answered now.
func (t *turns) resume() {
	t.done(1)
	t.take()
	t.flush()
}

// answered notes who has an answer to send at the end of the round.
func (t *turns) answered(f Flusher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.flushers) - 1; i >= 0; i-- {
		if t.flushers[i] == f {
			return
		}
	}
	t.flushers = append(t.flushers, f)
}

// flush ends a round.
func (t *turns) flush() {
	var round [16]Flusher
	for {
		t.mu.Lock()
		n := copy(round[:], t.flushers)
		rest := copy(t.flushers, t.flushers[n:])
		clear(t.flushers[rest:])
		t.flushers = t.flushers[:rest]
		t.mu.Unlock()
		if n == 0 {
			return
		}
		for i := range n {
			round[i].Flush()
			round[i] = nil
		}
	}
}

// settled is closed when no batch is pending.
func (t *turns) settled() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	if t.pending == 0 {
		close(t.idle)
		t.idle = nil
	}
	return idle
}
