package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"
)

// probesTimeout is what a scrape in flight may take at the very end.
const probesTimeout = time.Second

// maxLinger is how long clients have to leave connections that they use, where
// the predrain is no shorter.
const maxLinger = time.Second

// errCut says that the shutdown cut work off.
var errCut = errors.New("work in flight was cut off by the deadline of the shutdown")

// Shutdown ends the instance as control plane 23.4 says: unready and answering
// waiting readers, still serving for the predrain, then no new connections, the
// planner's lease given back, work in flight under one deadline, the metrics
// listener last. A second call, or the end of ctx, cuts the predrain short.
// The error says that work was cut off. The store is the caller's to close,
// afterwards.
func (s *Server) Shutdown(ctx context.Context) error {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		s.hurryOnce.Do(func() { close(s.hurry) })
		<-s.done
		return s.err
	}
	defer close(s.done)
	s.ready.drain()
	s.api.Drain()
	s.predrain(ctx)
	if s.drain() {
		s.err = errCut
	}
	last, cancel := context.WithTimeout(context.Background(), probesTimeout)
	defer cancel()
	s.probes.shutdown(last, 0)
	return s.err
}

// predrain keeps serving while balancers learn that this instance is not ready.
func (s *Server) predrain(ctx context.Context) {
	timer := time.NewTimer(s.o.ShutdownPredrain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.hurry:
	}
}

// drain ends listeners and loops under one deadline, and counts what was cut.
func (s *Server) drain() (cut bool) {
	began := s.o.Clock()
	ctx, cancel := context.WithTimeout(context.Background(), s.o.ShutdownDrainTimeout)
	defer cancel()
	s.stopLoops()
	var wait sync.WaitGroup
	var mu sync.Mutex
	forced := func(subsystem string) {
		s.metrics.drainForced.WithLabelValues(subsystem).Inc()
		s.o.Logger.Warn("work in flight was cut off", "subsystem", subsystem)
		mu.Lock()
		defer mu.Unlock()
		cut = true
	}
	for name, l := range map[string]*listener{"api": s.main, "bootstrap": s.boot} {
		if l == nil {
			continue
		}
		wait.Go(func() {
			if l.shutdown(ctx, min(maxLinger, s.o.ShutdownPredrain)) {
				forced(name)
			}
		})
	}
	wait.Go(func() {
		ended := make(chan struct{})
		go func() {
			s.loops.Wait()
			s.api.Close()
			close(ended)
		}()
		select {
		case <-ended:
		case <-ctx.Done():
			forced("loops")
		}
	})
	wait.Wait()
	s.metrics.drainDuration.Set(float64(s.o.Clock().Sub(began).Milliseconds()))
	s.o.Logger.Info("control plane stopped", "cut", cut)
	return cut
}

// closeListeners undoes a start that failed.
func (s *Server) closeListeners() {
	for _, l := range []*listener{s.main, s.probes, s.boot} {
		if l != nil {
			_ = l.http.Close()
			<-l.stopped
		}
	}
}
