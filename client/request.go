package client

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

// requestIDAt is where an acked publish frame holds its request id: right
// behind the header (wire 4.2).
const requestIDAt = wire.HeaderSize

// A request is one published batch on its way: its frame, kept until it is
// answered so that it can be sent again where that is allowed, and whom to
// tell. Between send and settle it belongs to its lane and stream.
type request struct {
	lane  *lane
	frame []byte // binary, acked unless the lane is not; pooled
	seq   uint64 // order on its lane

	id      uint64 // on its stream
	number  uint64 // of its producer's batches for the shard, if it has one
	counted bool   // holds a place in the connection's window
	busy    bool   // the stream's writer reads frame; guarded by the stream

	atLeastOnce bool
	attempts    int       // times sent again
	reauths     int       // of those, for an expired token
	hops        int       // times a broker named another one as the owner
	failedAt    time.Time // first failure
	last        *Error    // latest failure
	doubtful    bool      // an attempt may have been applied
	hasty       bool      // no need to wait before it is sent again

	// Exactly one of these is told.
	done    func(Ack, error)
	pending *Pending
	wait    *answer

	pub *Publisher // counts it, if any
}

// An answer is where a synchronous publish waits.
type answer struct {
	ready chan struct{} // one token
	ack   Ack
	err   error
}

// requestPool lends requests, answers and their frames.
type requestPool struct {
	bufs     *bufferPool
	requests sync.Pool // of *request
	answers  sync.Pool // of *answer
}

func (p *requestPool) get() *request {
	if r, ok := p.requests.Get().(*request); ok {
		return r
	}
	return new(request)
}

// put recycles a request nobody refers to any longer.
func (p *requestPool) put(r *request) {
	p.bufs.put(r.frame)
	*r = request{}
	p.requests.Put(r)
}

func (p *requestPool) getAnswer() *answer {
	if a, ok := p.answers.Get().(*answer); ok {
		return a
	}
	return &answer{ready: make(chan struct{}, 1)}
}

func (p *requestPool) putAnswer(a *answer) {
	a.ack, a.err = Ack{}, nil
	p.answers.Put(a)
}

// finish tells whoever waits, gives back what the request held, and forgets
// it.
func (r *request) finish(ack Ack, err error) {
	c := r.lane.c
	ack.Shard = r.lane.shard
	size := len(r.frame)
	done, pending, wait, pub := r.done, r.pending, r.wait, r.pub
	producer, number := r.lane.producer, r.number
	c.requests.put(r)
	c.inflight.release(size)
	if producer != nil {
		producer.answered(number, err)
	}
	switch {
	case done != nil:
		done(ack, err)
	case pending != nil:
		pending.resolve(ack, err)
	case wait != nil:
		wait.ack, wait.err = ack, err
		wait.ready <- struct{}{}
	}
	// Counted last: a Flush returns after everybody was told.
	if producer != nil {
		producer.p.settled(err)
	}
	if pub != nil {
		pub.settled(err)
	}
}

// verdict is the error that r ends with: an attempt that may have been
// applied is not undone by a later one that was not.
func (r *request) verdict(e *Error) *Error {
	if !r.doubtful || e.OutcomeUnknown() {
		return e
	}
	c := *e
	c.Retry = RetryUnknown
	return &c
}

// detached is the request without ties to the writer of its stream. A stream
// may answer, or fail, while its writer is still inside the Write that reads
// the frame: then the original is left to the writer, and a copy goes on.
// The stream's mutex is held.
func (r *request) detached() *request {
	if !r.busy {
		return r
	}
	c := *r
	c.busy = false
	c.frame = append(r.lane.c.bufs.get(len(r.frame)), r.frame...)
	return &c
}

// setID writes the request's id into its frame.
func (r *request) setID(id uint64) {
	r.id = id
	binary.BigEndian.PutUint64(r.frame[requestIDAt:], id)
}
