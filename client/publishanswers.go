package client

import (
	"fmt"

	"github.com/felixlog/felix/wire"
)

// read is the goroutine that reads answers until the stream ends.
func (s *publishStream) read() {
	s.end(s.readAnswers())
	s.settleRest()
}

func (s *publishStream) readAnswers() error {
	var (
		ack     wire.Ack
		decoder wire.Decoder
		owner   ownerCache
		freed   int
	)
	for {
		h, payload, err := s.sess.in.Next()
		if err != nil {
			return err
		}
		switch h.Flags.Kind() {
		case wire.FrameAck:
			if err = wire.ParseAck(h.Flags, payload, &ack); err == nil {
				err = s.answer(ack.RequestID, ackOutcome(&ack, &owner, s.b.addr))
			}
		case wire.FrameJSON:
			var m wire.Message
			if m, err = decoder.Decode(payload); err == nil {
				err = s.message(m)
			}
		default:
			err = fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))
		}
		if err != nil {
			return err
		}
		freed++
		if !s.sess.in.Buffered() {
			s.freed(freed)
			freed = 0
		}
	}
}

// freed lets senders look for room, once per read rather than per answer.
func (s *publishStream) freed(n int) {
	s.mu.Lock()
	s.room.wake(n)
	s.mu.Unlock()
}

// answer settles the request with that id.
func (s *publishStream) answer(id uint64, o outcome) error {
	s.mu.Lock()
	r := s.ring.take(id)
	if r != nil {
		r = r.detached()
	}
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("answer to request %d, which is not under way", id)
	}
	s.settle(r, o)
	return nil
}

// message handles a JSON answer.
func (s *publishStream) message(m wire.Message) error {
	switch m := m.(type) {
	case *wire.PublishOK:
		o := outcome{}
		o.ack.Offset, o.ack.HasOffset = m.Offset.Get()
		return s.answer(m.RequestID, o)
	case *wire.PublishError:
		e := refused("publish", s.b.addr, m.Failure())
		e.RequestID = m.RequestID
		return s.answer(m.RequestID, outcome{err: e})
	case *wire.PublishRefused:
		return s.answer(m.RequestID, outcome{err: refusedBatch(s.b.addr, m)})
	case *wire.Error:
		// It names no request: the stream is about to end. What was sent is
		// still answered if the broker took it.
		s.mu.Lock()
		s.refusal = refused("publish", s.b.addr, m.Failure())
		s.retireLocked()
		s.mu.Unlock()
		return nil
	default:
		return fmt.Errorf("unexpected %s on a publish stream", m.MessageType())
	}
}

// ackOutcome is what a binary ack says.
func ackOutcome(a *wire.Ack, owners *ownerCache, addr string) outcome {
	if !a.Failed {
		o := outcome{ack: Ack{Offset: a.Offset, HasOffset: a.HasOffset}}
		if a.HasOwner {
			o.ack.Owner = owners.get(a)
		}
		return o
	}
	e := refused("publish", addr, a.Failure())
	e.RequestID = a.RequestID
	o := outcome{err: e}
	if a.HasOwner {
		o.ack.Owner = owners.get(a)
	}
	return o
}

// An ownerCache remembers the owner a stream's acks last named, so that one
// value serves them all.
type ownerCache struct{ last *Owner }

func (c *ownerCache) get(a *wire.Ack) *Owner {
	if l := c.last; l == nil || l.NodeID != a.OwnerNode || l.Addr != a.OwnerAddr || l.Generation != a.OwnerGeneration {
		c.last = &Owner{NodeID: a.OwnerNode, Addr: a.OwnerAddr, Generation: a.OwnerGeneration}
	}
	return c.last
}
