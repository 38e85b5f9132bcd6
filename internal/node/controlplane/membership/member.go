package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// An API is what membership asks of the control plane.
type API interface {
	RegisterNode(ctx context.Context, r apiclient.Registration) (apiclient.Registered, error)
	Heartbeat(ctx context.Context, id string, incarnation uint64) (apiclient.Heartbeat, error)
	DrainNode(ctx context.Context, id string) (model.Node, error)
	DeregisterNode(ctx context.Context, id string) (model.Node, error)
}

// Options are what a member is made with.
type Options struct {
	API    API
	Logger *slog.Logger
	// CallTimeout bounds one call; 0 means 5 s (broker 12.2).
	CallTimeout time.Duration
	// RetryBase and RetryMax bound the pauses between attempts to register; 0
	// means 200 ms and 10 s.
	RetryBase, RetryMax time.Duration
	// Jitter draws from 0 up to n; nil is random.
	Jitter func(n int64) int64
}

// The bounds of what a control plane may ask for.
const (
	defaultHeartbeat = 5 * time.Second
	minHeartbeat     = 10 * time.Millisecond
	maxHeartbeat     = time.Minute
)

// A Member is one broker's membership.
type Member struct {
	o Options

	mu     sync.Mutex
	state  state
	joined chan struct{} // closed at the first registration
}

type state struct {
	registered  bool
	left        bool // on purpose: no registration comes after
	incarnation uint64
	lifecycle   model.Lifecycle
	heartbeat   time.Duration
	lease       lease
	stats       Stats
}

// Stats count what a member did.
type Stats struct {
	Registrations, Heartbeats, Failures uint64 // failures of either
	Lifecycle                           model.Lifecycle
	Incarnation                         uint64
}

// New returns a member that has not joined.
func New(o Options) *Member {
	if o.CallTimeout <= 0 {
		o.CallTimeout = 5 * time.Second
	}
	if o.RetryBase <= 0 {
		o.RetryBase = 200 * time.Millisecond
	}
	if o.RetryMax <= 0 {
		o.RetryMax = 10 * time.Second
	}
	if o.Jitter == nil {
		o.Jitter = rand.Int64N
	}
	return &Member{o: o, joined: make(chan struct{})}
}

// A RefusedError says that the control plane does not let the broker join.
type RefusedError struct {
	NodeID string
	Err    *apiclient.Error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the control plane refuses node %q: %v", e.NodeID, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Run registers and then sends heartbeats until ctx ends. It returns a
// [*RefusedError] if the first registration is refused for good, and nil else:
// once a member, a broker goes on serving whatever it is told. One that was a
// member in an earlier run and serves from what it knew is not ended by a
// refusal of its credential either: the control plane may have lost the keys.
func (m *Member) Run(ctx context.Context, r apiclient.Registration, wasMember bool) error {
	final := (*apiclient.Error).Final
	if wasMember {
		final = func(e *apiclient.Error) bool {
			return e.Final() && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden
		}
	}
	for {
		if err := m.register(ctx, r, final); err != nil {
			return err
		}
		if ctx.Err() != nil || m.hasLeft() {
			return nil
		}
		final = func(*apiclient.Error) bool { return false }
		m.beat(ctx, r.NodeID)
		if ctx.Err() != nil || m.hasLeft() {
			return nil
		}
	}
}

// register tries until it is done or refused with what is final, with pauses
// that double.
func (m *Member) register(ctx context.Context, r apiclient.Registration, final func(*apiclient.Error) bool) error {
	told := ""
	for pause := m.o.RetryBase; ; pause = min(2*pause, m.o.RetryMax) {
		sent := time.Now()
		call, cancel := context.WithTimeout(ctx, m.o.CallTimeout)
		got, err := m.o.API.RegisterNode(call, r)
		cancel()
		if err == nil {
			m.registered(got, sent)
			m.o.Logger.Info("registered with the control plane", "node_id", r.NodeID, "incarnation", got.Node.Status.Incarnation)
			return nil
		}
		if ctx.Err() != nil || m.hasLeft() {
			return nil
		}
		m.failed()
		var refused *apiclient.Error
		if errors.As(err, &refused) && final(refused) {
			return &RefusedError{NodeID: r.NodeID, Err: refused}
		}
		if told != err.Error() {
			told = err.Error()
			m.o.Logger.Warn("cannot register with the control plane; trying again", "node_id", r.NodeID, "error", err)
		}
		if !m.sleep(ctx, pause/2+time.Duration(m.o.Jitter(int64(pause/2)+1))) {
			return nil
		}
	}
}

// beat sends heartbeats until the registration is no longer one.
func (m *Member) beat(ctx context.Context, id string) {
	told := ""
	for m.sleep(ctx, m.interval()) {
		again, err := m.beatOnce(ctx, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil && told != err.Error():
			told = err.Error()
			m.o.Logger.Warn("heartbeat failed; serving goes on", "node_id", id, "error", err)
		case err == nil && told != "":
			told = ""
			m.o.Logger.Info("heartbeats are accepted again", "node_id", id)
		}
		if again || m.hasLeft() {
			return
		}
	}
}

// beatOnce sends one heartbeat; again says that the broker has to register.
func (m *Member) beatOnce(ctx context.Context, id string) (again bool, err error) {
	incarnation := m.incarnation()
	call, cancel := context.WithTimeout(ctx, m.o.CallTimeout)
	defer cancel()
	sent := time.Now()
	got, err := m.o.API.Heartbeat(call, id, incarnation)
	if err != nil {
		m.failed()
		switch apiclient.StatusOf(err) {
		case 404:
			m.o.Logger.Warn("the control plane does not know this node any more; registering again", "node_id", id)
			return true, nil
		case 409:
			m.o.Logger.Error("another broker has registered under this node's id since; registering again. Give each broker an id of its own", "node_id", id)
			return true, nil
		}
		return false, err
	}
	if !m.accepted(got, sent) {
		m.o.Logger.Warn("the control plane counts this node as out; registering again", "node_id", id, "lifecycle", string(got.Lifecycle))
		return true, nil
	}
	return false, nil
}

// Drain asks for the node's shards to be moved away.
func (m *Member) Drain(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.CallTimeout)
	defer cancel()
	_, err := m.o.API.DrainNode(ctx, id)
	return err
}

// Leave says good-bye. Heartbeats and registrations end with it.
func (m *Member) Leave(ctx context.Context, id string) error {
	m.mu.Lock()
	was := m.state.registered
	m.state.left, m.state.registered, m.state.lease = true, false, lease{}
	m.mu.Unlock()
	if !was {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.CallTimeout)
	defer cancel()
	_, err := m.o.API.DeregisterNode(ctx, id)
	return err
}

func (m *Member) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
