package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

// A lane is the way of one shard's records from this client to the broker.
// It keeps their order: at any time its requests are under way on one stream
// only, and while some have to be sent again the ones behind wait.
type lane struct {
	c     *Client
	route *route
	shard uint32
	acked bool
	slot  int // which of a broker's streams it uses

	producer *producerShard // whose batches these are; nil for plain publishes

	tenant, namespace, stream []byte // as a frame wants them

	mu          sync.Mutex
	changed     waitList // for anything below
	current     *publishStream
	opening     bool
	outstanding int // requests on current, not settled
	sequence    uint64
	redo        []*request // to be sent again
	recovering  bool       // somebody sends redo again: new requests wait

	// Of an unacknowledged lane: earlier streams that have not ended yet, and
	// how one ended that the broker did not read to its end.
	earlier []*publishStream
	broken  error

	owner           string // address of the shard's owner, if it named itself
	ownerGeneration uint64
}

// An outcome is how a request ended on its stream.
type outcome struct {
	ack    Ack
	err    *Error
	unsent bool // nothing of it reached the broker
}

func newLane(r *route, shard uint32, acked bool, slot int) *lane {
	l := &lane{
		c: r.c, route: r, shard: shard, acked: acked, slot: slot,
		tenant: []byte(r.c.cfg.tenant), namespace: []byte(r.namespace), stream: []byte(r.stream),
	}
	l.changed.mu = &l.mu
	return l
}

func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outstanding == 0 && !l.recovering && !l.opening
}

// settled waits until nothing is under way on the lane.
func (l *lane) settled(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.outstanding > 0 || l.recovering {
		if err := l.changed.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// send hands r over. On an error nothing was sent, and r is the caller's.
func (l *lane) send(ctx context.Context, r *request, direct bool) error {
	for {
		s, err := l.acquire(ctx, r)
		if err != nil {
			return err
		}
		err = s.enqueue(ctx, r, direct)
		if err == nil {
			if !l.acked {
				l.leave()
			}
			return nil
		}
		l.leave()
		if !errors.Is(err, errStreamGone) {
			return err
		}
	}
}

// acquire gives the stream to send r on and counts r as outstanding there.
func (l *lane) acquire(ctx context.Context, r *request) (*publishStream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		usable := l.current != nil && !l.current.gone() && !l.wrongBroker()
		switch {
		case l.c.ctx.Err() != nil:
			return nil, ErrClosed
		case usable && !l.recovering:
			l.outstanding++
			r.seq = l.sequence
			l.sequence++
			return l.current, nil
		case l.recovering || l.opening || l.outstanding > 0:
			// Another stream is used only once nothing is under way on this
			// one, or a record could overtake those before it.
			if err := l.changed.wait(ctx); err != nil {
				return nil, err
			}
		default:
			if err := l.open(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// open connects the lane to a stream. mu is held, and released meanwhile.
func (l *lane) open(ctx context.Context) error {
	l.opening = true
	l.mu.Unlock()
	s, err := l.c.publishStream(ctx, l)
	l.mu.Lock()
	l.opening = false
	if err == nil {
		if !l.acked && l.current != nil {
			l.part(l.current)
		}
		l.current = s
	}
	l.changed.wakeAll()
	return err
}

// part remembers what is left to know of a stream of unacknowledged
// publishes that the lane no longer uses. mu is held.
func (l *lane) part(old *publishStream) {
	const remembered = 16
	l.earlier = append(l.earlier, old)
	open := l.earlier[:0]
	for i, s := range l.earlier {
		ended, err := s.unread()
		switch {
		case ended && l.broken == nil:
			l.broken = err
		case !ended && len(l.earlier)-i <= remembered:
			open = append(open, s)
		}
	}
	clear(l.earlier[len(open):])
	l.earlier = open
}

// wrongBroker says that the shard's owner is known and is not where the
// lane's stream goes. mu is held.
func (l *lane) wrongBroker() bool {
	return l.owner != "" && l.current.b.addr != l.owner
}

// leave gives back what acquire counted. No lock is held.
func (l *lane) leave() {
	l.mu.Lock()
	l.outstanding--
	l.changed.wakeAll()
	l.mu.Unlock()
}

// settle takes the outcome of r on s: it is final, or r is sent again.
func (l *lane) settle(s *publishStream, r *request, o outcome) {
	l.mu.Lock()
	l.outstanding--
	again := o.err != nil && l.again(s, r, o)
	if o.err == nil && o.ack.Owner != nil {
		l.follow(o.ack.Owner)
	}
	start := again && !l.recovering
	if again {
		l.redo = append(l.redo, r)
		l.recovering = true
	}
	if l.outstanding == 0 || again {
		l.changed.wakeAll()
	}
	l.mu.Unlock()
	if !again {
		if o.err != nil {
			if o.err.Code == CodeNotFound {
				l.route.forget()
			}
			r.finish(o.ack, r.verdict(o.err))
			return
		}
		r.finish(o.ack, nil)
		return
	}
	if start && !l.c.spawn(l.recover) {
		l.abandon()
	}
}

// follow remembers the owner that an ack named (wire 9.3). mu is held.
func (l *lane) follow(o *Owner) {
	if o.Addr == "" || l.owner == o.Addr || o.Generation < l.ownerGeneration {
		return
	}
	l.owner, l.ownerGeneration = o.Addr, o.Generation
}

// again decides whether a request that failed is sent again. Unless asked to
// be at-least-once that happens only when nothing of it was applied and the
// cause is on our side: the stream was lost before it was sent, the token
// had expired, or the owner we went to by ourselves was not it. mu is held.
func (l *lane) again(s *publishStream, r *request, o outcome) bool {
	if l.c.ctx.Err() != nil {
		return false
	}
	if r.failedAt.IsZero() {
		r.failedAt = time.Now()
	}
	r.last, r.hasty = o.err, false
	r.doubtful = r.doubtful || o.err.OutcomeUnknown()
	if o.err.Code == CodeUnauthenticated {
		return l.reauthenticate(s, r)
	}
	if o.err.Code == CodeNotLeader && l.redirected(s, r, o.ack.Owner) {
		return true
	}
	direct := l.owner != "" && s.b.addr == l.owner
	if direct {
		l.owner, l.current = "", nil // back through the entry broker
	}
	switch {
	case l.producer != nil:
		return l.producer.again(l, r, o.err)
	case r.attempts+1 >= l.c.cfg.reconnect.Attempts:
		return false
	case o.unsent:
		r.hasty = r.attempts == 0 // finding another stream has its own waits
	case direct && (o.err.Retry == RetryNow || o.err.Retry == RetryElsewhere) && r.attempts == 0:
	case !r.atLeastOnce:
		return false
	case o.err.Code == CodeNotFound && time.Since(r.failedAt) > notFoundFor:
		return false
	case !o.err.Retryable() && !o.err.OutcomeUnknown():
		return false
	}
	r.attempts++
	return true
}

// redirected follows a refusal that names the shard's owner: nothing of the
// request was applied, and the lane goes on there (wire 15). mu is held.
func (l *lane) redirected(s *publishStream, r *request, to *Owner) bool {
	if l.producer != nil || to == nil || to.Addr == s.b.addr || r.hops >= maxHops {
		return false
	}
	l.follow(to)
	if l.owner == "" || l.owner == s.b.addr {
		return false
	}
	r.hops++
	r.hasty = true
	return true
}

// reauthenticate decides it for a request whose stream's token has expired:
// another stream asks for another.
func (l *lane) reauthenticate(s *publishStream, r *request) bool {
	const maxReauths = 2
	if !l.c.cfg.renewable || r.reauths >= maxReauths {
		return false
	}
	r.reauths++
	s.retire()
	return true
}

// encode makes r's frame: acknowledged or not as the lane is.
func (l *lane) encode(r *request, key []byte, keyed bool, mode AckMode, payloads [][]byte) error {
	p := wire.Publish{
		Acked: l.acked, AckMode: wire.AckMode(mode),
		Keyed: keyed, Key: key,
		Tenant: l.tenant, Namespace: l.namespace, Stream: l.stream,
	}
	if l.producer != nil {
		p.Idempotent, p.ProducerID = true, l.producer.p.id
	}
	block := wire.BlockSize(payloads...)
	size := p.Size() - wire.BlockSize() + block
	if size-wire.HeaderSize > l.c.cfg.maxFrame {
		return frameTooLarge(size-wire.HeaderSize, l.c.cfg.maxFrame)
	}
	frame := p.AppendHead(l.c.bufs.get(size), block)
	r.frame = wire.AppendBlock(frame, payloads...)
	r.lane = l
	return nil
}
