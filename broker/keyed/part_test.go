package keyed

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hand is a clock that stands where it is put.
type hand struct{ millis atomic.Int64 }

func (h *hand) Now() time.Time                              { return time.UnixMilli(1_000_000 + h.millis.Load()) }
func (h *hand) AfterFunc(time.Duration, func()) func() bool { return func() bool { return false } }

var errRemoved = errors.New("removed")

// An unavailable is what the owner in these tests makes of a reason.
type unavailable struct {
	reason Reason
	err    error
}

func (u *unavailable) Error() string { return u.reason.String() }
func (u *unavailable) Unwrap() error { return u.err }

// A fixture is parts over one store.
type fixture struct {
	t     *testing.T
	clock *hand
	store *storage.Store
	*Shared
}

func newFixture(t *testing.T, f fs.FS) *fixture {
	t.Helper()
	x := &fixture{t: t, clock: &hand{}}
	var err error
	x.store, err = storage.Open(f, storage.Config{Root: "/data", Log: shardlog.Options{Fsync: shardlog.OnCommit}, JournalBytes: -1}, storage.Deps{Clock: x.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.store.Close() })
	x.Shared = NewShared(x.store, steady.New(x.clock), -1)
	return x
}

// part makes a part that is ended and closed with the test.
func (x *fixture) part(after <-chan struct{}, build func(kvlog.Log, kvlog.Options) (*kvlog.Map, error)) *Part[*kvlog.Map] {
	if after == nil {
		now := make(chan struct{})
		close(now)
		after = now
	}
	if build == nil {
		build = kvlog.Open
	}
	owner := &Owner{
		Key: storage.Key{Tenant: "t", Namespace: "n", Name: "x"}, After: after, Removed: errRemoved,
		Unavailable: func(r Reason, err error) error { return &unavailable{r, err} },
		Logger:      slog.New(slog.DiscardHandler),
	}
	p := &Part[*kvlog.Map]{}
	p.Init(x.Shared, owner, storage.Groups, build, nil)
	x.t.Cleanup(func() {
		p.End()
		_ = p.Close()
	})
	return p
}

func (x *fixture) reason(err error, want Reason) {
	x.t.Helper()
	if u, ok := errors.AsType[*unavailable](err); !ok || u.reason != want {
		x.t.Fatalf("%v, want %v", err, want)
	}
}

// A part is refused while it is opened, which the first use starts, and what is
// written is there when it is opened anew.
func TestUseOpens(t *testing.T) {
	x := newFixture(t, fstest.New(1))
	gate := make(chan struct{})
	p := x.part(nil, func(l kvlog.Log, o kvlog.Options) (*kvlog.Map, error) {
		<-gate
		return kvlog.Open(l, o)
	})
	if p.Opened() != nil {
		t.Fatal("open before it is used")
	}
	_, err := p.Use()
	x.reason(err, Opening)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := p.Ready(ctx); err != gone {
		t.Fatal(err)
	}
	close(gate)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	open, err := p.Use()
	if err != nil || p.Opened() != open {
		t.Fatal(err)
	}
	if _, err := open.Index.WriteWait(kvlog.Write{Key: []byte("k"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	p.End()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again := x.part(nil, nil)
	if err := again.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found, err := again.Opened().Index.Get([]byte("k")); err != nil || !found {
		t.Fatal(found, err)
	}
}

// Nothing is opened before whoever had the log has let go of it.
func TestOpeningWaitsForItsTurn(t *testing.T) {
	x := newFixture(t, fstest.New(1))
	after := make(chan struct{})
	p := x.part(after, nil)
	p.Start()
	_, err := p.Use()
	x.reason(err, Opening)
	close(after)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A failure that may pass is tried again, but not at once; damage is not.
func TestFailedOpenings(t *testing.T) {
	x := newFixture(t, fstest.New(1))
	tries, fails := 0, error(fstest.ErrIO)
	p := x.part(nil, func(l kvlog.Log, o kvlog.Options) (*kvlog.Map, error) {
		tries++
		if fails != nil {
			return nil, fails
		}
		return kvlog.Open(l, o)
	})
	for range 3 {
		err := p.Ready(t.Context())
		if x.reason(err, Failed); !errors.Is(err, fstest.ErrIO) {
			t.Fatal(err)
		}
	}
	if tries != 1 {
		t.Fatalf("%d tries at once", tries)
	}
	fails = &kvlog.CorruptionError{Offset: 7}
	x.clock.millis.Add(ReopenAfter.Milliseconds())
	for range 3 {
		x.reason(p.Ready(t.Context()), Failed)
		x.clock.millis.Add(ReopenAfter.Milliseconds())
	}
	if tries != 2 {
		t.Fatalf("%d tries, damage stays damage", tries)
	}
	_, err := p.Use()
	x.reason(err, Failed)
}

// After the end nothing is opened, and an opening that runs lets go of its log.
func TestEndWhileOpening(t *testing.T) {
	x := newFixture(t, fstest.New(1))
	building, gate := make(chan struct{}), make(chan struct{})
	p := x.part(nil, func(l kvlog.Log, o kvlog.Options) (*kvlog.Map, error) {
		close(building)
		<-gate
		return kvlog.Open(l, o)
	})
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := p.Ready(t.Context()); err != errRemoved {
			t.Error(err)
		}
	})
	<-building
	p.End()
	close(gate)
	wait.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Use(); err != errRemoved {
		t.Fatal(err)
	}
	if err := x.part(nil, nil).Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutStorage(t *testing.T) {
	x := newFixture(t, fstest.New(1))
	x.Shared = NewShared(nil, steady.New(x.clock), 0)
	_, err := x.part(nil, nil).Use()
	x.reason(err, NoStorage)
}
