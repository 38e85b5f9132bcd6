package metadata

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/raft"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/node/controlplane/membership"
	"github.com/felixlog/felix/wire"
)

// A steppedClock is the machine's, off by what the test says.
type steppedClock struct{ off atomic.Int64 }

func (c *steppedClock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.off.Load())) }

const (
	hour   = time.Hour
	decade = 10 * 365 * 24 * time.Hour // ten years, which no clock is off by innocently
)

// TestClockOfTheControlPlaneSteps sets the clock of an instance with its store
// forth and back, under members that count their leases on clocks of their own.
// No member is taken for down, a group of one goes on being led, and a member that
// falls silent after the step is found.
//
// What does not hold: tokens end by the clock of the instance that is asked, so
// that a step forward ends those that would have ended by then, for as long as
// the clock is wrong. The store's own time never goes back: after a step forward
// that is undone, registrations and moves carry times of the future.
func TestClockOfTheControlPlaneSteps(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		clock := new(steppedClock)
		stepClock(t, memory.Open(memory.Options{Clock: clock.now}), clock, hour)
	})
	t.Run("raft", func(t *testing.T) {
		t.Parallel()
		clock := new(steppedClock)
		s, err := raft.Open(t.Context(), raft.Options{DataDir: filepath.Join(t.TempDir(), "raft"), Clock: clock.now, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		stepClock(t, s, clock, decade)
	})
}

const clockMembers = 5

// stepClock steps the clock forth by so much, and back.
func stepClock(t *testing.T, s store.Store, clock *steppedClock, by time.Duration) {
	t.Cleanup(func() { must(t, s.Close()) })
	o := controlplane.DefaultOptions()
	o.Store, o.ValidateName, o.BindAddr, o.MetricsBind = s, wire.ValidateName, "127.0.0.1:0", "127.0.0.1:0"
	o.Clock, o.Logger, o.ShutdownPredrain, o.PlacementSettle = clock.now, slog.New(slog.DiscardHandler), 0, 0
	// The expiry leaves room for a machine that is busy with other tests.
	o.NodeHeartbeatInterval, o.NodeExpiryTimeout, o.NodeRegrantMargin = 50*time.Millisecond, 2*time.Second, 500*time.Millisecond
	o.NodeExpirySweepInterval, o.ShardReconcileInterval = 50*time.Millisecond, 100*time.Millisecond
	server, err := controlplane.Start(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, server.Shutdown(context.Background())) })
	token := endlessToken(t, s)
	api := newClient(t, "http://"+server.Addr(), token)

	members := make([]*membership.Member, clockMembers)
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	join := func(n int) (silence func()) {
		m := membership.New(membership.Options{API: api, Logger: slog.New(slog.DiscardHandler)})
		members[n] = m
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		group.Go(func() {
			defer close(ended)
			_ = m.Run(ctx, apiclient.Registration{NodeID: nodeName(n), AdvertiseAddr: fmt.Sprintf("10.0.0.%d:7000", n+1), Region: "local", Capacity: &model.Capacity{Weight: 1}}, false)
		})
		select {
		case <-m.Joined():
		case <-time.After(patience):
			t.Fatal("it does not join")
		}
		return func() {
			cancel()
			<-ended
		}
	}
	silence := make([]func(), clockMembers)
	for n := range members {
		silence[n] = join(n)
	}
	// calm lets more than a lease pass, and has everybody be a member all the
	// time.
	calm := func(step time.Duration) {
		t.Helper()
		until := time.Now().Add(o.NodeExpiryTimeout * 3 / 2)
		eventually(t, "more than a lease", func() error {
			for n, m := range members {
				if st := m.Stats(); st.Registrations != 1 || !m.LeaseValid() {
					t.Fatalf("after a step of %v: member %d was registered %d times, its lease holds: %t", step, n, st.Registrations, m.LeaseValid())
				}
			}
			if time.Now().Before(until) {
				return errors.New("it has not passed")
			}
			return nil
		})
	}
	for _, step := range []time.Duration{by, -by} {
		clock.off.Add(int64(step))
		calm(step)
	}
	silence[0]()
	eventually(t, "the silent member is found although the clock was set back", func() error {
		n, err := s.Node(t.Context(), nodeName(0))
		if err == nil && n.Status.Lifecycle != model.Down {
			err = fmt.Errorf("it is %s", n.Status.Lifecycle)
		}
		return err
	})
	for n := 1; n < clockMembers; n++ {
		if got, err := s.Node(t.Context(), nodeName(n)); err != nil || got.Status.Lifecycle != model.Live || got.Status.Incarnation != 0 {
			t.Errorf("member %d is %+v, %v", n, got.Status, err)
		}
	}
	for _, silent := range silence[1:] {
		silent()
	}
}

func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }

// endlessToken makes a tenant of operators, and a token that no clock ends.
func endlessToken(t *testing.T, s store.Store) string {
	t.Helper()
	must(t, s.CreateTenant(t.Context(), model.Tenant{TenantID: operators, DisplayName: operators}))
	private, err := auth.GenerateKey(rand.Reader)
	must(t, err)
	signer := auth.NewSigner("", private)
	_, err = s.EnsureSigningKey(t.Context(), operators, model.SigningKey{
		KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent,
	})
	must(t, err)
	token, err := signer.Mint(auth.Claims{
		Tenant: operators, Subject: operator, Audience: auth.AudienceControlPlane,
		Permissions: []string{"node.view:cluster:*", "node.manage:cluster:*"}, IssuedAt: time.Now().Add(-2 * decade), Expires: auth.NoExpiry(),
	})
	must(t, err)
	return token
}
