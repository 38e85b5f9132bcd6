package controlplane

import (
	"context"
	"time"
)

const (
	clockPeriod = time.Second
	// clockStep is the least by which a clock is set. What is less is drift, and
	// its correction.
	clockStep = time.Second
)

// watchClock gives a turn that logs by how much the clock of this instance was
// set since the turn before.
func (s *Server) watchClock() (turn func(context.Context)) {
	last := s.o.Clock()
	return func(context.Context) {
		now := s.o.Clock()
		by := now.Round(0).Sub(last.Round(0)) - now.Sub(last) // what it went on, less the time that passed
		last = now
		if by.Abs() < clockStep {
			return
		}
		msg := "the machine's clock was set forward, or the machine slept"
		if by < 0 {
			msg = "the machine's clock was set back"
		}
		s.o.Logger.Warn(msg, "by", by.Abs().Round(time.Millisecond).String(), "clock", now.UTC().Format(time.RFC3339),
			"changes", "tokens are issued and judged by the new time; leases of brokers go on as if it had not been set, and the store's own time never goes back")
	}
}
