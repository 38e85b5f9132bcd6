package session

import (
	"errors"
	"sync"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// replies is the sole writer of a control stream. Whoever has an answer
// appends its frame; the bytes leave in as few writes as the moment allows:
//
//   - While the reader works through the frames of one read, answers only
//     gather. The reader flushes them in one write when no whole frame is left
//     at hand (design: the path of a get has no hop).
//   - Answers that come later, from an executor or a committer, are written
//     together at the end of its round by whoever brings them, if the peer's
//     window has room. It never blocks that goroutine: without room a writer
//     goroutine takes over.
//
// What is pending is bounded by maxPending; a peer that does not read its
// answers loses its stream, and only that.
type replies struct {
	stream  transport.SendStream
	timeout time.Duration // longest a blocked write may take

	mu       sync.Mutex
	pending  []byte
	spare    []byte
	inRound  bool // the reader is working and will flush
	writing  bool // a write is under way and will take what is appended
	finished bool // the stream is closed for writing
	err      error
	idle     sync.Cond // signalled when writing ends

	owed            int       // answers that the stream's ledgers owe
	appended, taken uint64    // bytes given, and those of them the carrier has
	sent            sync.Cond // signalled when taken grows, or never will
}

const (
	// maxPendingReplies bounds the bytes of answers waiting for one stream.
	// The largest single answer, a cache value, is below a frame's cap; a few
	// of them may wait beside the small ones.
	maxPendingReplies = 64 << 20
	// keepReplyBuffer is the largest buffer kept between rounds.
	keepReplyBuffer = 256 << 10
)

var errRepliesFull = errors.New("peer does not read its answers")

func newReplies(s transport.SendStream, timeout time.Duration) *replies {
	r := &replies{stream: s, timeout: timeout}
	r.idle.L = &r.mu
	r.sent.L = &r.mu
	return r
}

// beginRound is called by the reader before it handles the frames at hand.
func (r *replies) beginRound() {
	r.mu.Lock()
	r.inRound = true
	r.mu.Unlock()
}

// begin locks the pending answers and returns them for appending; end takes
// them back. Between the two no answer of another goroutine can intervene.
func (r *replies) begin() []byte {
	r.mu.Lock()
	return r.pending
}

func (r *replies) end(pending []byte) {
	r.setLocked(pending)
	r.mu.Unlock()
}

// setLocked keeps what was appended, unless the stream is already given up.
func (r *replies) setLocked(pending []byte) {
	if r.err != nil || r.finished {
		return
	}
	r.appended += uint64(len(pending) - len(r.pending))
	r.pending = pending
	if len(r.pending) > maxPendingReplies {
		r.failLocked(errRepliesFull)
	}
}

// Flush sends what others than the reader have answered: it implements
// [broker.Flusher].
func (r *replies) Flush() { r.kick() }

// kick writes what is pending unless a round or another write will.
func (r *replies) kick() {
	r.mu.Lock()
	if r.inRound || r.writing || len(r.pending) == 0 || r.err != nil {
		r.mu.Unlock()
		return
	}
	err := r.stream.TryWrite(r.pending)
	switch {
	case err == nil:
		r.takenLocked(len(r.pending))
		r.pending = r.pending[:0]
	case errors.Is(err, transport.ErrWouldBlock):
		r.writing = true
		go r.drain()
	default:
		r.failLocked(err)
	}
	r.mu.Unlock()
}

// flush ends the reader's round and writes everything pending. It blocks
// while the peer's window is closed, which stops the reader: a peer that does
// not take answers is not asked for more requests.
func (r *replies) flush() error {
	r.mu.Lock()
	r.inRound = false
	for r.writing {
		r.idle.Wait()
	}
	r.flushLocked()
	err := r.err
	r.mu.Unlock()
	return err
}

// flushLocked writes what is pending, on this goroutine; no other writes.
func (r *replies) flushLocked() {
	if r.err != nil || len(r.pending) == 0 {
		return
	}
	switch err := r.stream.TryWrite(r.pending); {
	case err == nil:
		r.takenLocked(len(r.pending))
		r.pending = r.pending[:0]
		r.shrinkLocked()
	case errors.Is(err, transport.ErrWouldBlock):
		r.writing = true
		r.writeLocked()
	default:
		r.failLocked(err)
	}
}

// errFinished is the error of an answer that comes after the stream's end.
var errFinished = errors.New("the stream has ended")

// deliver appends an answer of another goroutine than the reader's and waits
// until the carrier has it. On an error the peer has not got the whole of it.
func (r *replies) deliver(m wire.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return r.err
	case r.finished:
		return errFinished
	}
	r.setLocked(wire.AppendMessage(r.pending, m))
	end := r.appended
	if !r.inRound && !r.writing {
		r.flushLocked()
	}
	for r.err == nil && r.taken < end {
		r.sent.Wait()
	}
	if r.taken < end {
		return r.err
	}
	return nil
}

func (r *replies) takenLocked(n int) {
	r.taken += uint64(n)
	r.sent.Broadcast()
}

func (r *replies) drain() {
	r.mu.Lock()
	r.writeLocked()
	r.mu.Unlock()
}

// writeLocked writes until nothing is pending. writing is set by the caller;
// the lock is released around each write.
func (r *replies) writeLocked() {
	for r.err == nil && len(r.pending) > 0 {
		out := r.pending
		r.pending, r.spare = r.spare[:0], nil
		r.mu.Unlock()
		err := r.stream.SetWriteDeadline(time.Now().Add(r.timeout))
		if err == nil {
			_, err = r.stream.Write(out)
		}
		r.mu.Lock()
		if cap(out) <= keepReplyBuffer {
			r.spare = out[:0]
		}
		if err != nil {
			r.failLocked(err)
		} else {
			r.takenLocked(len(out))
		}
	}
	r.shrinkLocked()
	r.writing = false
	r.idle.Broadcast()
}

func (r *replies) shrinkLocked() {
	if cap(r.pending) > keepReplyBuffer && len(r.pending) == 0 {
		r.pending = nil
	}
}

// failLocked gives the stream up; later answers are discarded.
func (r *replies) failLocked(err error) {
	if r.err == nil {
		r.err = err
		r.pending = nil
		r.stream.CancelWrite(codeNone)
		r.sent.Broadcast()
	}
}

// finish flushes and ends the stream cleanly; after a failure the stream is
// already reset.
func (r *replies) finish() {
	err := r.flush()
	r.mu.Lock()
	already := r.finished
	r.finished = true
	r.mu.Unlock()
	if err == nil && !already {
		_ = r.stream.CloseWrite()
	}
}
