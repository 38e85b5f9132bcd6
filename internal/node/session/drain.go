package session

import (
	"context"
	"time"
)

// Drain ends the server's work in the order of broker 12.2: streams opened
// from now on are refused, and polls that wait answered; requests in progress and
// streams in use have a grace; subscriptions then deliver what is queued and end; connections close.
// It returns the number of connections cut off because ctx ended first.
func (s *Server) Drain(ctx context.Context, grace time.Duration) (cut int) {
	s.draining.Store(true)
	s.drain(errDrained)
	s.waitQuiet(ctx, grace)
	s.mu.Lock()
	conns := make([]*connection, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	until := time.Now().Add(lastDelivery)
	for _, c := range conns {
		c.endEvents(until)
	}
	for _, c := range conns {
		if !c.awaitEvents(ctx) {
			cut++
		}
	}
	s.pause(ctx, s.cfg.ControlDrain) // lets the last frames reach their peers
	for _, c := range conns {
		_ = c.conn.Close(codeNone, "broker shutting down")
	}
	s.idle.Wait()
	return cut
}

// lastDelivery is how long a subscriber that does not read can hold up a stop.
const lastDelivery = 2 * time.Second

// waitQuiet gives clients up to grace to finish. A node nobody is asking
// anything of does not make its operator wait: the first quiet look ends it.
func (s *Server) waitQuiet(ctx context.Context, grace time.Duration) {
	const look = 50 * time.Millisecond
	served := s.served.Load()
	for waited := time.Duration(0); waited < grace; waited += look {
		if !s.pause(ctx, look) {
			return
		}
		now := s.served.Load()
		if now == served && s.inflight.Load() == 0 && s.owed() == 0 {
			return
		}
		served = now
	}
}

// owed is how many answers wait for a commit, or are polls'.
func (s *Server) owed() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		n += c.owed.Load()
	}
	return n
}

// pause waits d, or less when ctx ends; it says whether it waited in full.
// The clock that tokens expire by is not asked: a stop takes real time.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
