package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// faultyNode is a node on a disk that fails on demand.
func faultyNode(t *testing.T) (*felixtest.Node, *client.Client, *fstest.Faults) {
	t.Helper()
	faults := fstest.NewFaults(fstest.New(1))
	n := felixtest.Start(t, felixtest.WithFileSystem(faults), felixtest.WithSetting("shutdown-drain-timeout-ms", "1000"))
	return n, dialNode(t, n, client.WithReconnect(client.ReconnectPolicy{
		Attempts: 100, Initial: time.Millisecond, Max: 10 * time.Millisecond,
	})), faults
}

// fullDisk says what is wrong with the error of a write to a full disk.
func fullDisk(err error) string {
	var e *client.Error
	switch {
	case !errors.Is(err, client.ErrStorageFull):
		return "is not ErrStorageFull"
	case !errors.Is(err, client.ErrOverloaded), !errors.As(err, &e), e.RetryAfter == 0:
		return "does not ask to come again later"
	case !client.IsRetryable(err), client.IsOutcomeUnknown(err):
		return "leaves open whether the record was written"
	}
	return ""
}

func TestStorageFull(t *testing.T) {
	n, c, faults := faultyNode(t)
	n.CreateCache("users")
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "orders", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := c.Cache("users").Put(ctx, "u1", []byte("before")); err != nil {
		t.Fatal(err)
	}
	faults.SetQuota(0)
	if _, err := c.Publish(ctx, "orders", []byte("lost")); fullDisk(err) != "" {
		t.Errorf("publish: %v %s", err, fullDisk(err))
	}
	once := dialNode(t, n, client.WithReconnect(client.ReconnectPolicy{Attempts: 1}))
	if _, err := once.Cache("users").PutIf(ctx, "u2", nil, client.IfAbsent()); fullDisk(err) != "" {
		t.Errorf("put: %v %s", err, fullDisk(err))
	}
	if v, ok, err := c.Cache("users").Get(ctx, "u1"); string(v) != "before" || !ok || err != nil {
		t.Errorf("get on a full disk: %q %v, %v", v, ok, err)
	}
	// A producer comes again until there is room.
	p, err := c.NewProducer(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := p.Send(ctx, []byte("0"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-waiting.Done():
		t.Error("answered on a full disk")
	case <-time.After(10 * time.Millisecond):
	}
	faults.LiftQuota()
	pending := []*client.Pending{waiting}
	for i := 1; i < 10; i++ {
		f, err := p.Send(ctx, fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, f)
	}
	for i, f := range pending {
		if _, err := f.Wait(ctx); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	checkRecords(t, c, "before", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
}

func checkRecords(t *testing.T, c *client.Client, want ...string) {
	t.Helper()
	var got []string
	for ev, err := range c.Records(testContext(t), "orders", client.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(ev.Payload))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records %q, want %q", got, want)
	}
}

// TestStorageFailed: a write whose flush failed is unknown, the shard is out
// of service until the broker has looked at its log again, and a producer
// sees its batch through, once.
func TestStorageFailed(t *testing.T) {
	n, c, faults := faultyNode(t)
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "orders", []byte("before")); err != nil {
		t.Fatal(err)
	}
	p, err := c.NewProducer(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(ctx, []byte("first")); err != nil {
		t.Fatal(err)
	}
	failing := faults.FailSync("", 0)
	pending, err := p.Send(ctx, []byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	once := dialNode(t, n, client.WithReconnect(client.ReconnectPolicy{Attempts: 1}))
	for {
		_, err := once.Publish(ctx, "orders", []byte("never"))
		if errors.Is(err, client.ErrShardUnavailable) && client.IsRetryable(err) {
			break
		}
		// Until the log has given up, it is no better for other writers.
		if !client.IsOutcomeUnknown(err) || ctx.Err() != nil {
			t.Fatalf("publish to a shard whose log fails: %v", err)
		}
	}
	failing.Stop()
	n.Restart()
	if _, err := pending.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(ctx, []byte("third")); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	var got []string
	for ev, err := range c.Records(ctx, "orders", client.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if string(ev.Payload) != "never" { // of which nobody was told
			got = append(got, string(ev.Payload))
		}
	}
	if want := "[before first second third]"; fmt.Sprint(got) != want {
		t.Errorf("records %s, want %s", got, want)
	}
}

// TestStorageFailureIsUnknown: what a plain publish hears of a failed flush.
func TestStorageFailureIsUnknown(t *testing.T) {
	_, c, faults := faultyNode(t)
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "orders", []byte("before")); err != nil {
		t.Fatal(err)
	}
	faults.FailSync("", 0)
	_, err := c.Publish(ctx, "orders", []byte("perhaps"))
	if !errors.Is(err, client.ErrStorage) || !client.IsOutcomeUnknown(err) || client.IsRetryable(err) {
		t.Errorf("publish over a failed flush: %v", err)
	}
}
