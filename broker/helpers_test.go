package broker

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testClock is time as package time tells it, which in a synctest bubble is
// the bubble's.
type testClock struct{}

func (testClock) Now() time.Time { return time.Now() }

func (testClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

const (
	testTenant    = "acme"
	testNamespace = "default"
)

func fullName(name string) StreamName {
	return StreamName{Tenant: testTenant, Namespace: testNamespace, Name: name}
}

// A fixture is a broker with one tenant and namespace, and one identity.
type fixture struct {
	*Broker
	t    testing.TB
	conn *admission.Connection
	id   *admission.Identity
}

func newFixture(t testing.TB, cfg Config) *fixture {
	t.Helper()
	f := &fixture{Broker: New(cfg, testClock{}), t: t}
	t.Cleanup(f.Close)
	f.must(f.AddTenant(testTenant))
	f.must(f.AddNamespace(testTenant, testNamespace))
	f.conn = f.NewConnection()
	f.id = f.conn.Identity(testTenant, "someone")
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// shard registers a stream of one shard and resolves it.
func (f *fixture) shard(name string) *stream.Shard {
	f.t.Helper()
	f.must(f.AddStream(fullName(name), StreamOptions{}))
	s, err := f.Stream(testTenant, testNamespace, name)
	f.must(err)
	return s.Shard(0)
}

func (f *fixture) subscribe(sh *stream.Shard, o stream.SubscribeOptions) *stream.Subscription {
	f.t.Helper()
	sub, err := sh.Subscribe(context.Background(), o)
	f.must(err)
	return sub
}

// batchOf is a batch of the given payloads.
func batchOf(payloads ...string) Batch {
	b := Batch{Block: binary.BigEndian.AppendUint32(nil, uint32(len(payloads))), Count: len(payloads)}
	for _, p := range payloads {
		b.Block = binary.BigEndian.AppendUint32(b.Block, uint32(len(p)))
		b.Block = append(b.Block, p...)
		b.PayloadBytes += len(p)
	}
	return b
}

// sized is a batch of one record of n bytes.
func sized(n int) Batch { return batchOf(string(make([]byte, n))) }

// outcomes is a Completion that keeps what it heard.
type outcomes struct {
	mu      sync.Mutex
	results []Result
}

func (o *outcomes) Complete(r Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results = append(o.results, r)
}

func (o *outcomes) all() []Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Result(nil), o.results...)
}

// busy makes a shard's lane busy: a subscription under block is full, and a
// publish waits for it. What it returns makes the lane free.
func (f *fixture) busy(sh *stream.Shard) (free func()) {
	f.t.Helper()
	sub := f.subscribe(sh, stream.SubscribeOptions{Policy: stream.Block, Capacity: 1})
	before := f.hub.Stats().Blocked
	for range 2 {
		f.must(f.Publish(context.Background(), sh, f.id, batchOf("x"), Fail, nil))
	}
	eventually(f.t, "a publish waits for the full queue", func() bool { return f.hub.Stats().Blocked > before })
	return sub.Close
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}
