package planner

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// bubble is a cluster on the time of a bubble, and a store that can be made to
// misbehave.
func bubble(t *testing.T) (*cluster, *moody) {
	s := &moody{Store: memory.Open(memory.Options{}), may: true}
	return &cluster{t: t, ctx: t.Context(), stores: []store.Store{s}, policy: testPolicy}, s
}

// A moody store counts passes, is slow, is down or is no leader.
type moody struct {
	store.Store
	mu     sync.Mutex
	passes []time.Time // when one began
	ends   []time.Time // when one had read everything
	slow   time.Duration
	down   bool
	may    bool
}

var errDown = &store.UnavailableError{Err: errors.New("nobody answers")}

func (s *moody) PlacementToken(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	s.passes = append(s.passes, time.Now())
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	return s.Store.PlacementToken(ctx)
}

func (s *moody) Reports(ctx context.Context) ([]model.ReplicaReport, error) {
	s.mu.Lock()
	s.ends = append(s.ends, time.Now())
	s.mu.Unlock()
	return s.Store.Reports(ctx)
}

func (s *moody) NowMillis(ctx context.Context) (uint64, error) {
	if s.is(&s.down) {
		return 0, errDown
	}
	return s.Store.NowMillis(ctx)
}

func (s *moody) MayPlan(context.Context) (bool, error) { return s.is(&s.may), nil }

func (s *moody) is(b *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *b
}

func (s *moody) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *moody) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.passes)
}

// run runs a planner until the test ends.
func (c *cluster) run(change ...func(*Options)) *Planner {
	p := c.planner(0, change...)
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	c.t.Cleanup(func() { cancel(); <-done })
	return p
}

// beat keeps brokers alive until the test ends.
func (c *cluster) beat(ids ...string) {
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, DefaultHeartbeat) {
			for _, id := range ids {
				_, err := c.store().Heartbeat(ctx, id, 0)
				c.check(err)
			}
		}
	}()
	c.t.Cleanup(func() { cancel(); <-done })
}

func (c *cluster) leader(k model.ShardKey) string {
	a, err := c.store().Assignment(c.ctx, k)
	if err != nil {
		return ""
	}
	return a.Leader
}
