package broker

import (
	"context"
	"errors"
	"testing"

	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
)

// A purged stream is gone with all that stands beside it, whether or not it is
// registered, and a name made anew begins empty.
func TestPurgeStream(t *testing.T) {
	for _, registered := range []bool{true, false} {
		d, disk := inMemory(t, syncing(), Config{})
		s := d.stream("s", StreamOptions{Durable: true, Shards: 2, UID: "a"})
		for i := range uint32(2) {
			d.sent(s.Shard(i), batchOf("x"))
			d.must(d.Groups().Ready(t.Context(), queue.Ref{Shard: s.Shard(i), Group: "g"}))
		}
		other := d.stream("other", StreamOptions{Durable: true, UID: "b"})
		d.sent(other.Shard(0), batchOf("y"))
		sub := d.subscribe(s.Shard(0), stream.SubscribeOptions{})
		if !registered {
			d.must(d.RemoveStream(fullName("s")))
		}
		if n, err := d.PurgeStream(t.Context(), fullName("s"), "z"); n != 0 || err != nil {
			t.Fatalf("another uid: %d, %v", n, err)
		}
		if n := shardFiles(t, disk); n != 7 {
			t.Fatalf("%d directories", n)
		}
		n, err := d.PurgeStream(t.Context(), fullName("s"), "a")
		if n != 2 || err != nil {
			t.Fatalf("registered %v: purged %d, %v", registered, n, err)
		}
		if _, err := sub.Next(t.Context()); err != stream.ErrRemoved {
			t.Error(err)
		}
		var missing *NotFoundError
		if _, err := d.Stream(testTenant, testNamespace, "s"); !errors.As(err, &missing) {
			t.Error(err)
		}
		if n := shardFiles(t, disk); n != 1 {
			t.Errorf("%d directories, want that of the other stream", n)
		}
		if n, err := d.PurgeStream(t.Context(), fullName("s"), "a"); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
		s = d.stream("s", StreamOptions{Durable: true, Shards: 2, UID: "c"})
		if got := d.sent(s.Shard(0), batchOf("new")); got != 0 {
			t.Errorf("the new stream goes on at %d", got)
		}
	}
}

func TestPurgeCache(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	c := d.cache("c", CacheOptions{Durable: true, Shards: 2, UID: "a"})
	for i := range uint32(2) {
		d.must(c.Ready(t.Context(), i))
		if err := putWait(c, i, "k", "v"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.CounterGet(1, []byte("n")); err != nil {
		t.Fatal(err)
	}
	if n := shardFiles(t, disk); n != 3 {
		t.Fatalf("%d directories", n)
	}
	if n, err := d.PurgeCache(t.Context(), cacheName("c"), "a"); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n := shardFiles(t, disk); n != 0 {
		t.Errorf("%d directories", n)
	}
	if n, err := d.PurgeCache(t.Context(), cacheName("c"), "a"); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	c = d.cache("c", CacheOptions{Durable: true, Shards: 2, UID: "b"})
	d.must(c.Ready(t.Context(), 0))
	if _, found, err := c.Get(0, []byte("k")); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

// Data of an earlier creation of the name refuses the shards it is of, and only
// those; they serve once it is purged.
func TestEarlierDataIsNeitherServedNorRemoved(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true, Shards: 2, UID: "old"})
	d.must(d.Assign(streamID("s", 0), 1))
	d.must(s.Shard(0).Ready(t.Context()))
	d.sent(s.Shard(0), batchOf("old"))
	d.must(d.RemoveStream(fullName("s")))

	s = d.stream("s", StreamOptions{Durable: true, Placed: true, Shards: 2, UID: "new"})
	for i := range uint32(2) {
		d.must(d.Assign(streamID("s", i), 1))
	}
	d.reach(streamID("s", 1), placed.Active)
	d.reach(streamID("s", 0), placed.Failed)
	r := d.send(s.Shard(0), batchOf("x"))
	var identity *storage.IdentityError
	if !errors.As(r.Err, &identity) || identity.Have != "old" || identity.Want != "new" {
		t.Fatalf("%v", r.Err)
	}
	d.sent(s.Shard(1), batchOf("y"))
	// The tombstone of the old one comes late. The new one goes on.
	before := shardFiles(t, disk)
	if n, err := d.PurgeStream(t.Context(), fullName("s"), "old"); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if after := shardFiles(t, disk); after != before-1 {
		t.Errorf("%d directories of %d", after, before)
	}
	if !s.Active() {
		t.Fatal("the new stream was removed")
	}
	eventually(t, "the shard serves", func() bool { return s.Shard(0).Ready(t.Context()) == nil })
	if got := d.sent(s.Shard(0), batchOf("z")); got != 0 {
		t.Errorf("at %d", got)
	}
}

func TestPurgeRefusals(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	if _, err := d.PurgeStream(t.Context(), fullName("s"), ""); err != ErrNoUID {
		t.Error(err)
	}
	if _, err := d.PurgeCache(t.Context(), cacheName("c"), ""); err != ErrNoUID {
		t.Error(err)
	}
	// Served by somebody who does not know whose it is.
	s := d.stream("s", StreamOptions{Durable: true, UID: "a"})
	d.sent(s.Shard(0), batchOf("x"))
	d.must(d.RemoveStream(fullName("s")))
	s = d.stream("s", StreamOptions{Durable: true})
	d.must(s.Shard(0).Ready(t.Context()))
	var used *storage.InUseError
	if n, err := d.PurgeStream(t.Context(), fullName("s"), "a"); n != 0 || !errors.As(err, &used) {
		t.Errorf("%d, %v", n, err)
	}
	d.sent(s.Shard(0), batchOf("y"))
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("had enough")
	cancel(cause)
	d.must(d.RemoveStream(fullName("s")))
	if _, err := d.PurgeStream(ended, fullName("s"), "a"); err != nil && !errors.Is(err, cause) {
		t.Error(err)
	}
}

// A broker without storage has nothing on disk, and ends what is registered.
func TestPurgeInMemory(t *testing.T) {
	f := newFixture(t, Config{})
	s := f.stream("s", StreamOptions{UID: "a"})
	if n, err := f.PurgeStream(t.Context(), fullName("s"), "b"); n != 0 || err != nil || !s.Active() {
		t.Fatalf("%d, %v, active %v", n, err, s.Active())
	}
	if n, err := f.PurgeStream(t.Context(), fullName("s"), "a"); n != 0 || err != nil || s.Active() {
		t.Fatalf("%d, %v, active %v", n, err, s.Active())
	}
}
