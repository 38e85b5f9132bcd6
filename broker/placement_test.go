package broker

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

func streamID(name string, shard uint32) ShardID {
	return ShardID{Kind: KindStream, Tenant: testTenant, Namespace: testNamespace, Name: name, Shard: shard}
}

func cacheID(name string, shard uint32) ShardID {
	return ShardID{Kind: KindCache, Tenant: testTenant, Namespace: testNamespace, Name: name, Shard: shard}
}

func cacheName(name string) CacheName {
	return CacheName{Tenant: testTenant, Namespace: testNamespace, Name: name}
}

// stream registers a stream and resolves it.
func (f *fixture) stream(name string, o StreamOptions) *stream.Stream {
	f.t.Helper()
	f.must(f.AddStream(fullName(name), o))
	s, err := f.Stream(testTenant, testNamespace, name)
	f.must(err)
	return s
}

func (f *fixture) cache(name string, o CacheOptions) *cache.Cache {
	f.t.Helper()
	f.must(f.AddCache(cacheName(name), o))
	c, err := f.Cache(testTenant, testNamespace, name)
	f.must(err)
	return c
}

// written is what a cache answered.
type written chan error

func (w written) Written(_ cache.Result, err error) { w <- err }

// putWait writes a key and waits for the end.
func putWait(c *cache.Cache, shard uint32, key, value string) error {
	w := make(written, 1)
	c.Write(shard, cache.Write{Op: cache.Put, Key: []byte(key), Value: []byte(value)}, w)
	return <-w
}

func (f *fixture) state(id ShardID) ShardState {
	f.t.Helper()
	st, err := f.ShardState(id)
	f.must(err)
	return st
}

// reach waits until a shard is in a state.
func (f *fixture) reach(id ShardID, want placed.State) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s is %s", id, want), func() bool { return f.state(id).State == want })
}

// notServed checks that an error says that a shard is not served, and why.
func notServed(t testing.TB, what string, err error, want placed.Reason) {
	t.Helper()
	var e *NotServedError
	if !errors.As(err, &e) || e.Reason != want {
		t.Fatalf("%s: %v, want a shard that is not served: %s", what, err, want)
	}
}

// shardFiles counts what is on disk of the logs of a store.
func shardFiles(t testing.TB, disk *fstest.Faults) (n int) {
	t.Helper()
	for _, space := range storage.Spaces() {
		names, err := disk.List(filepath.Join(root, string(space)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, testTenant+"_") {
				n++
			}
		}
	}
	return n
}

// A shard that is not assigned opens nothing and refuses everything; one that
// is serves, until it is taken away.
func TestAssignment(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true, Shards: 3, UID: "u"})
	c := d.cache("c", CacheOptions{Durable: true, Placed: true, Shards: 2, UID: "w"})
	for id, st := range d.ShardStates() {
		if st != (ShardState{State: placed.Unassigned}) {
			t.Errorf("%s: %+v", id, st)
		}
	}
	if n := shardFiles(t, disk); n != 0 || d.Opening() != (Opening{}) {
		t.Fatalf("%d directories of shards nobody serves, %+v", n, d.Opening())
	}
	notServed(t, "publish", d.Publish(t.Context(), s.Shard(1), d.id, batchOf("x"), Wait, nil), placed.NotAssigned)
	_, err := s.Shard(1).Subscribe(t.Context(), stream.SubscribeOptions{})
	notServed(t, "subscribe", err, placed.NotAssigned)
	_, err = s.Shard(1).Read(t.Context(), stream.ReadOptions{})
	notServed(t, "read", err, placed.NotAssigned)
	_, err = s.Shard(1).State(t.Context(), []byte("k"))
	notServed(t, "state", err, placed.NotAssigned)
	_, _, err = c.Get(0, []byte("k"))
	notServed(t, "get", err, placed.NotAssigned)
	_, err = c.Watch(t.Context(), cache.WatchOptions{})
	notServed(t, "watch", err, placed.NotAssigned)
	_, _, err = c.CounterGet(0, []byte("k"))
	notServed(t, "counter", err, placed.NotAssigned)
	notServed(t, "group", d.Groups().Ready(t.Context(), queue.Ref{Shard: s.Shard(1), Group: "g"}), placed.NotAssigned)

	d.must(d.Assign(streamID("s", 1), 3))
	d.must(d.Assign(cacheID("c", 0), 7))
	d.reach(streamID("s", 1), placed.Active)
	d.reach(cacheID("c", 0), placed.Active)
	sh := s.Shard(1)
	d.sent(sh, batchOf("a", "b"))
	if err := putWait(c, 0, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, sh, 0); len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if d.state(streamID("s", 0)).State != placed.Unassigned || d.state(streamID("s", 1)).Generation != 3 {
		t.Errorf("%+v, %+v", d.state(streamID("s", 0)), d.state(streamID("s", 1)))
	}
	if n := shardFiles(t, disk); n != 2 {
		t.Errorf("%d directories, want one of a stream's shard and one of a cache's", n)
	}

	d.must(d.Unassign(streamID("s", 1), 4, "moves to b"))
	d.must(d.Unassign(cacheID("c", 0), 8, "moves to b"))
	d.reach(streamID("s", 1), placed.Unassigned)
	d.reach(cacheID("c", 0), placed.Unassigned)
	if st := d.state(streamID("s", 1)); st.Generation != 4 || st.Reason != "moves to b" {
		t.Errorf("%+v", st)
	}
	if n := d.store.Stats(); n.OpenLogs != 0 || n.OpeningLogs != 0 || n.OpenSealed != 0 {
		t.Errorf("%+v of shards that were taken away", n)
	}
	notServed(t, "the old handle", d.Publish(t.Context(), sh, d.id, batchOf("x"), Wait, nil), placed.Moving)
	notServed(t, "the new one", d.Publish(t.Context(), s.Shard(1), d.id, batchOf("x"), Wait, nil), placed.NotAssigned)

	d.must(d.Assign(streamID("s", 1), 5))
	d.must(d.Assign(cacheID("c", 0), 9))
	d.reach(streamID("s", 1), placed.Active)
	d.reach(cacheID("c", 0), placed.Active)
	if got := readAll(t, s.Shard(1), 0); len(got) != 2 || string(got[1].Payload) != "b" {
		t.Fatalf("after it came back: %+v", got)
	}
	if item, found, err := c.Get(0, []byte("k")); err != nil || !found || string(item.Value) != "v" {
		t.Fatalf("%+v %v %v", item, found, err)
	}
}

// Orders count by their generation: old ones change nothing, the same one twice
// neither.
func TestOldOrdersChangeNothing(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true})
	id := streamID("s", 0)
	for _, step := range []struct {
		order      string
		generation uint64
		serves     bool
		held       uint64
	}{
		{"unassign", 0, false, 0}, // the first generation is 0
		{"assign", 0, false, 0},
		{"release", 0, false, 0},
		{"assign", 0, true, 0},
		{"assign", 0, true, 0},
		{"unassign", 0, true, 0},
		{"assign", 5, true, 5},
		{"assign", 5, true, 5},
		{"unassign", 4, true, 5},
		{"unassign", 5, true, 5},
		{"assign", 8, true, 8},
		{"assign", 6, true, 8},
		{"unassign", 9, false, 9},
		{"assign", 9, false, 9},
		{"assign", 2, false, 9},
		{"unassign", 12, false, 12},
		{"assign", 11, false, 12},
		{"assign", 13, true, 13},
		{"release", 0, false, 0},
		{"release", 0, false, 0},
		{"assign", 0, true, 0},
		{"unassign", 1, false, 1},
	} {
		before := s.Shard(0)
		switch step.order {
		case "assign":
			d.must(d.Assign(id, step.generation))
		case "unassign":
			d.must(d.Unassign(id, step.generation, "moves"))
		default:
			d.must(d.Release(id, "not in the snapshot"))
		}
		if got := d.state(id); s.Shard(0).Active() != step.serves || got.Generation != step.held {
			t.Fatalf("%+v: %+v", step, got)
		}
		if before.Active() && s.Shard(0) != before && step.serves {
			t.Fatalf("%+v: a shard that serves was replaced", step)
		}
	}
}

// Orders that make no sense are refused, and change nothing.
func TestImpossibleOrders(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	d.stream("free", StreamOptions{})
	d.stream("s", StreamOptions{Placed: true})
	d.cache("c", CacheOptions{Placed: true})
	d.cache("free", CacheOptions{})
	var missing *NotFoundError
	var noShard *stream.NoShardError
	var noPart *cache.ShardError
	for _, order := range []func(ShardID) error{
		func(id ShardID) error { return d.Assign(id, 9) },
		func(id ShardID) error { return d.Unassign(id, 9, "") },
		func(id ShardID) error { return d.Release(id, "") },
	} {
		for _, id := range []ShardID{streamID("none", 0), cacheID("none", 0)} {
			if err := order(id); !errors.As(err, &missing) {
				t.Errorf("%s: %v", id, err)
			}
		}
		for _, id := range []ShardID{streamID("free", 0), cacheID("free", 0)} {
			if err := order(id); !errors.Is(err, placed.ErrNotPlaced) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if err := order(streamID("s", 1)); !errors.As(err, &noShard) {
			t.Error(err)
		}
		if err := order(cacheID("c", 1)); !errors.As(err, &noPart) {
			t.Error(err)
		}
		if err := order(ShardID{Kind: KindTenant, Name: "x"}); err == nil {
			t.Error("a tenant has no shards")
		}
	}
	if _, err := d.ShardState(streamID("s", 1)); !errors.As(err, &missing) {
		t.Error(err)
	}
}

// What lives on a shard ends when it is taken away, and says why.
func TestUnassignEndsWhatLives(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true})
	c := d.cache("c", CacheOptions{Durable: true, Placed: true})
	d.must(d.Assign(streamID("s", 0), 1))
	d.must(d.Assign(cacheID("c", 0), 1))
	sh := s.Shard(0)
	d.must(sh.Ready(t.Context()))
	d.must(c.Ready(t.Context(), 0))
	sub := d.subscribe(sh, stream.SubscribeOptions{})
	watch, err := c.Watch(t.Context(), cache.WatchOptions{})
	d.must(err)
	defer watch.Close()
	ref := queue.Ref{Shard: sh, Group: "g"}
	d.must(d.Groups().Ready(t.Context(), ref))
	polled := make(chan error, 1)
	go func() {
		_, err := d.Groups().Poll(t.Context(), ref, queue.PollOptions{MaxRecords: 1, Wait: time.Hour, Holder: tracker.Holder{Consumer: "c"}})
		polled <- err
	}()
	eventually(t, "the poll waits", func() bool { return d.Stats().Groups.Waiting == 1 })

	d.must(d.Unassign(streamID("s", 0), 2, "drained"))
	d.must(d.Unassign(cacheID("c", 0), 2, "drained"))
	_, err = sub.Next(t.Context())
	notServed(t, "subscription", err, placed.Moving)
	var told *NotServedError
	if errors.As(err, &told); told.Generation != 2 || told.Detail != "drained" || told.Shard.String() != "acme/default/s/0" {
		t.Errorf("%+v", told)
	}
	_, err = watch.Next(t.Context())
	notServed(t, "watch", err, placed.Moving)
	notServed(t, "poll", <-polled, placed.Moving)
	d.reach(streamID("s", 0), placed.Unassigned)
	d.reach(cacheID("c", 0), placed.Unassigned)
	if st := d.Stats(); st.Subscribe.Subscriptions != 0 || st.Cache.Watches != 0 || st.Groups.Groups != 0 {
		t.Errorf("%+v", st)
	}
}

// A shard goes back and forth under publishers. Every publish that was
// acknowledged is there, in the order of the offsets that were told, and none is
// left unanswered.
func TestNothingAcknowledgedIsLostInAMove(t *testing.T) {
	d, _ := inMemory(t, shardlog.Options{Fsync: shardlog.OnCommit, SegmentBytes: 4096}, Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true})
	id := streamID("s", 0)
	const writers, moves = 4, 25
	var mu sync.Mutex
	acked := map[uint64]string{}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				payload := fmt.Sprintf("%d-%d", w, n)
				r := d.send(s.Shard(0), batchOf(payload))
				if r.Err != nil {
					var refused *NotServedError
					if !errors.As(r.Err, &refused) {
						t.Errorf("publish: %v", r.Err)
						return
					}
					continue
				}
				mu.Lock()
				acked[r.Offset] = payload
				mu.Unlock()
			}
		})
	}
	counted := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acked)
	}
	for m := range uint64(moves) {
		before := counted()
		d.must(d.Assign(id, 2*m+1))
		eventually(t, "somebody was acknowledged", func() bool { return counted() > before+3 })
		d.must(d.Unassign(id, 2*m+2, "moves"))
	}
	close(stop)
	group.Wait()
	d.must(d.Assign(id, 2*moves+1))
	d.must(s.Shard(0).Ready(t.Context()))
	there := map[uint64]string{}
	for _, r := range readAll(t, s.Shard(0), 0) {
		there[r.Offset] = string(r.Payload)
	}
	for offset, payload := range acked {
		if there[offset] != payload {
			t.Fatalf("offset %d was acknowledged with %q and holds %q", offset, payload, there[offset])
		}
	}
}

// A publish that waits for a log that is slow to open is refused as soon as the
// shard is taken away.
func TestUnassignWhileOpening(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true})
	gate := disk.Block(fstest.OpCreate, "acme_default_s")
	d.must(d.Assign(streamID("s", 0), 1))
	<-gate.Arrived()
	if st := d.state(streamID("s", 0)); st.State != placed.Opening {
		t.Fatalf("%+v", st)
	}
	w := make(awaited, 1)
	d.must(d.Publish(t.Context(), s.Shard(0), d.id, batchOf("x"), Wait, w))
	d.must(d.Unassign(streamID("s", 0), 2, "moves"))
	notServed(t, "the publish", w.wait(t).Err, placed.Moving)
	if st := d.state(streamID("s", 0)); st.State != placed.Draining {
		t.Fatalf("%+v", st)
	}
	d.must(d.Assign(streamID("s", 0), 3)) // waits for the one that leaves
	disk.Clear()
	gate.Open()
	d.reach(streamID("s", 0), placed.Active)
	if d.sent(s.Shard(0), batchOf("y")) != 0 {
		t.Error("the refused publish is there")
	}
}

// Shards in memory begin empty each time, at offsets not used before.
func TestAssignmentInMemory(t *testing.T) {
	f := newFixture(t, Config{})
	s := f.stream("s", StreamOptions{Placed: true})
	c := f.cache("c", CacheOptions{Placed: true, Shards: 2})
	put := func(shard uint32) error { return putWait(c, shard, "k", "v") }
	notServed(t, "publish", f.Publish(t.Context(), s.Shard(0), f.id, batchOf("x"), Fail, nil), placed.NotAssigned)
	notServed(t, "put", put(0), placed.NotAssigned)
	f.must(f.Assign(streamID("s", 0), 1))
	f.must(f.Assign(cacheID("c", 0), 1))
	if f.state(streamID("s", 0)).State != placed.Active || f.state(cacheID("c", 0)).State != placed.Active {
		t.Fatal("not active")
	}
	f.must(f.Publish(t.Context(), s.Shard(0), f.id, batchOf("x"), Fail, nil))
	f.must(put(0))
	notServed(t, "put to another shard", put(1), placed.NotAssigned)
	sub := f.subscribe(s.Shard(0), stream.SubscribeOptions{})
	_, tail := s.Shard(0).Bounds()
	f.must(f.Unassign(streamID("s", 0), 2, ""))
	f.must(f.Unassign(cacheID("c", 0), 2, ""))
	_, err := sub.Next(t.Context())
	notServed(t, "subscription", err, placed.Moving)
	notServed(t, "put", put(0), placed.NotAssigned)
	if st := f.Stats().Cache; st.Entries != 0 || st.Bytes != 0 {
		t.Errorf("entries of a shard that was taken away: %+v", st)
	}
	f.must(f.Assign(streamID("s", 0), 3))
	f.must(f.Assign(cacheID("c", 0), 3))
	if oldest, next := s.Shard(0).Bounds(); oldest != next || next < tail {
		t.Errorf("[%d, %d) after [.., %d)", oldest, next, tail)
	}
	if _, found, err := c.Get(0, []byte("k")); err != nil || found {
		t.Errorf("a value of before: %v, %v", found, err)
	}
}

// What is to be kept in several copies is not served, and says why.
func TestSeveralCopiesAreNotServed(t *testing.T) {
	for _, isPlaced := range []bool{false, true} {
		d, disk := inMemory(t, syncing(), Config{})
		s := d.stream("s", StreamOptions{Durable: true, Placed: isPlaced, Copies: 3})
		c := d.cache("c", CacheOptions{Placed: isPlaced, Copies: 2})
		if isPlaced {
			if st := d.state(streamID("s", 0)); st.State != placed.Unassigned {
				t.Fatalf("%+v", st)
			}
			d.must(d.Assign(streamID("s", 0), 1))
			d.must(d.Assign(cacheID("c", 0), 1))
		}
		for _, id := range []ShardID{streamID("s", 0), cacheID("c", 0)} {
			if st := d.state(id); st.State != placed.Failed || !strings.Contains(st.Reason, "copies") {
				t.Errorf("%s: %+v", id, st)
			}
		}
		notServed(t, "publish", d.Publish(t.Context(), s.Shard(0), d.id, batchOf("x"), Fail, nil), placed.Unreplicated)
		_, _, err := c.Get(0, []byte("k"))
		notServed(t, "get", err, placed.Unreplicated)
		_, err = s.Shard(0).Subscribe(t.Context(), stream.SubscribeOptions{})
		notServed(t, "subscribe", err, placed.Unreplicated)
		if n := shardFiles(t, disk); n != 0 {
			t.Errorf("%d directories", n)
		}
		d.must(d.Ready(t.Context()))
		if isPlaced {
			d.must(d.Unassign(streamID("s", 0), 2, ""))
			d.reach(streamID("s", 0), placed.Unassigned)
		}
	}
	d, _ := inMemory(t, syncing(), Config{})
	one := d.stream("one", StreamOptions{Durable: true, Copies: 1})
	d.sent(one.Shard(0), batchOf("x"))
}

// A removed name's shards are closed, and orders about them refused.
func TestRemovalOfPlacedShards(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	s := d.stream("s", StreamOptions{Durable: true, Placed: true, Shards: 2})
	d.must(d.Assign(streamID("s", 0), 1))
	d.must(s.Shard(0).Ready(t.Context()))
	d.must(d.RemoveStream(fullName("s")))
	for i := range uint32(2) {
		if err := s.Shard(i).Err(); err != stream.ErrRemoved {
			t.Errorf("shard %d: %v", i, err)
		}
		if st := s.ShardStatus(i); st.State != placed.Closed {
			t.Errorf("shard %d: %+v", i, st)
		}
	}
	var missing *NotFoundError
	if err := d.Assign(streamID("s", 0), 2); !errors.As(err, &missing) {
		t.Error(err)
	}
	if err := s.Assign(0, 2); err != stream.ErrRemoved {
		t.Error(err)
	}
	// The next of the name waits for the logs of the one before.
	d.stream("s", StreamOptions{Durable: true, Placed: true, Shards: 2})
	d.must(d.Assign(streamID("s", 0), 1))
	d.reach(streamID("s", 0), placed.Active)
}
