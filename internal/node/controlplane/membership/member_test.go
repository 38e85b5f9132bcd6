package membership

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// An api is a control plane of one node, on the clock of the test.
type api struct {
	mu          sync.Mutex
	calls       []string
	incarnation uint64
	lifecycle   model.Lifecycle
	register    func() error
	heartbeat   func() error
	slow        time.Duration
}

func (a *api) do(call string, of func() func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
	if a.slow > 0 {
		time.Sleep(a.slow)
	}
	if f := of(); f != nil {
		return f()
	}
	return nil
}

func nothing() func() error { return nil }

func (a *api) RegisterNode(_ context.Context, r apiclient.Registration) (apiclient.Registered, error) {
	err := a.do("register", func() func() error { return a.register })
	if err != nil {
		return apiclient.Registered{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.incarnation++
	a.lifecycle = model.Live
	return apiclient.Registered{
		Node:                model.Node{NodeID: r.NodeID, Status: model.NodeStatus{Lifecycle: model.Live, Incarnation: a.incarnation}},
		HeartbeatIntervalMS: 5000, ExpiryTimeoutMS: 15000,
	}, nil
}

func (a *api) Heartbeat(_ context.Context, id string, incarnation uint64) (apiclient.Heartbeat, error) {
	err := a.do("heartbeat", func() func() error { return a.heartbeat })
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && incarnation != a.incarnation {
		err = &apiclient.Error{Status: 409}
	}
	return apiclient.Heartbeat{NodeID: id, Lifecycle: a.lifecycle, HeartbeatIntervalMS: 5000, ExpiryTimeoutMS: 15000}, err
}

func (a *api) DrainNode(context.Context, string) (model.Node, error) {
	return model.Node{}, a.do("drain", nothing)
}

func (a *api) DeregisterNode(context.Context, string) (model.Node, error) {
	return model.Node{}, a.do("deregister", nothing)
}

func (a *api) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *api) count(call string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, c := range a.calls {
		if c == call {
			n++
		}
	}
	return n
}

// join runs a member; stop ends it and gives what Run returned.
func join(t *testing.T, a *api) (m *Member, log *strings.Builder, stop func() error) {
	t.Helper()
	return joinAgain(t, a, false)
}

// joinAgain runs a member that may have been one before.
func joinAgain(t *testing.T, a *api, wasMember bool) (m *Member, log *strings.Builder, stop func() error) {
	t.Helper()
	log = new(strings.Builder)
	m = New(Options{API: a, Logger: slog.New(slog.NewTextHandler(log, nil)), Jitter: func(int64) int64 { return 0 }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, apiclient.Registration{NodeID: "b1"}, wasMember) }()
	synctest.Wait()
	return m, log, func() error {
		cancel()
		return <-ended
	}
}

var errAway = &apiclient.UnreachableError{Err: errors.New("connection refused")}

func TestHeartbeatsKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(api)
		m, _, stop := join(t, a)
		<-m.Joined()
		time.Sleep(time.Minute + time.Second)
		if got := a.count("heartbeat"); got != 12 || a.count("register") != 1 {
			t.Errorf("%d heartbeats in a minute", got)
		}
		// The lease ends 0.75 L after the last accepted heartbeat was sent.
		a.set(func() { a.heartbeat = func() error { return errAway } })
		time.Sleep(10 * time.Second)
		if !m.LeaseValid() {
			t.Error("the lease is over 11 s after the last heartbeat, of 11.25")
		}
		time.Sleep(300 * time.Millisecond)
		if m.LeaseValid() {
			t.Error("the lease is valid 11.3 s after the last heartbeat")
		}
		if !m.Registered() {
			t.Error("a silent control plane ends the membership")
		}
		a.set(func() { a.heartbeat = nil })
		time.Sleep(5 * time.Second)
		if !m.LeaseValid() || a.count("register") != 1 {
			t.Errorf("the lease comes back with the heartbeats; %d registrations", a.count("register"))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestTheLeaseCountsFromTheSending: an answer that took its time gives none of
// it.
func TestTheLeaseCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{slow: 4 * time.Second}
		m, _, stop := join(t, a)
		<-m.Joined()
		a.set(func() { a.heartbeat = func() error { return errAway } })
		time.Sleep(7200 * time.Millisecond)
		if !m.LeaseValid() {
			t.Error("the lease is over 11.2 s after it was sent")
		}
		time.Sleep(100 * time.Millisecond)
		if m.LeaseValid() {
			t.Error("the lease is valid 11.3 s after it was sent")
		}
		_ = stop()
	})
}

func TestANodeThatIsOutRegistersAgain(t *testing.T) {
	for name, harm := range map[string]func(a *api){
		"down":            func(a *api) { a.lifecycle = model.Down },
		"left":            func(a *api) { a.lifecycle = model.Left },
		"unknown state":   func(a *api) { a.lifecycle = "resting" },
		"unknown node":    func(a *api) { a.heartbeat = func() error { a.heartbeat = nil; return &apiclient.Error{Status: 404} } },
		"another took it": func(a *api) { a.incarnation++ },
		"away, then down": func(a *api) {
			a.heartbeat = func() error { a.heartbeat, a.lifecycle = nil, model.Down; return errAway }
		},
		"refused for once": func(a *api) {
			a.lifecycle = model.Down
			a.register = func() error { a.register = nil; return &apiclient.Error{Status: 403} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := new(api)
				m, _, stop := join(t, a)
				a.set(func() { harm(a) })
				time.Sleep(30 * time.Second)
				if got := m.Stats(); got.Registrations != 2 || got.Lifecycle != model.Live || !m.LeaseValid() {
					t.Errorf("%+v", got)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestARefusedRegistrationEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{register: func() error {
			return &apiclient.Error{Status: 409, Code: "conflict", Message: "10.0.0.1:7000 is taken by b2"}
		}}
		_, _, stop := join(t, a)
		err := stop()
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "taken by b2") || a.count("register") != 1 {
			t.Errorf("%v after %d attempts", err, a.count("register"))
		}
	})
}

// A control plane that lost its keys does not end a broker that serves from what
// it knew; one that says that the address is taken does.
func TestARefusedCredentialDoesNotEndAMember(t *testing.T) {
	for status, ends := range map[int]bool{401: false, 403: false, 409: true, 400: true} {
		synctest.Test(t, func(t *testing.T) {
			a := &api{register: func() error { return &apiclient.Error{Status: status} }}
			m, _, stop := joinAgain(t, a, true)
			time.Sleep(time.Minute)
			a.set(func() { a.register = nil })
			time.Sleep(11 * time.Second)
			if m.Registered() == ends {
				t.Errorf("after %d it is registered: %t", status, m.Registered())
			}
			var refused *RefusedError
			if err := stop(); errors.As(err, &refused) != ends {
				t.Errorf("after %d it ended with %v", status, err)
			}
		})
	}
}

func TestAnAbsentControlPlaneIsAskedAgain(t *testing.T) {
	for name, fail := range map[string]error{"away": errAway, "busy": &apiclient.Error{Status: 429}, "broken": &apiclient.Error{Status: 503}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &api{register: func() error { return fail }}
				m, log, stop := join(t, a)
				time.Sleep(5 * time.Minute)
				if got := a.count("register"); got < 5*60/10 || got > 5*60/5+10 {
					t.Errorf("%d attempts in five minutes", got)
				}
				if n := strings.Count(log.String(), "cannot register"); n != 1 {
					t.Errorf("%d lines tell of it", n)
				}
				a.set(func() { a.register = nil })
				time.Sleep(11 * time.Second)
				if !m.Registered() {
					t.Error("not registered")
				}
				_ = stop()
			})
		})
	}
}

func TestGoodByeIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(api)
		m, _, stop := join(t, a)
		if err := m.Leave(t.Context(), "b1"); err != nil {
			t.Fatal(err)
		}
		a.set(func() { a.lifecycle = model.Left })
		time.Sleep(time.Minute)
		if m.LeaseValid() || m.Registered() || a.count("register") != 1 || a.count("deregister") != 1 {
			t.Errorf("calls are %q", slices.Compact(a.calls))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
