//go:build !race

package session

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
	"github.com/felixlog/felix/wire"
)

// sink takes a stream's answers and gives nothing to read: what is counted
// below is the session's own work, without the carrier's.
type sink struct{}

func (sink) Read([]byte) (int, error)         { return 0, io.EOF }
func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) TryWrite([]byte) error            { return nil }
func (sink) CancelRead(uint64)                {}
func (sink) CancelWrite(uint64)               {}
func (sink) CloseWrite() error                { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) Context() context.Context         { return context.Background() }
func (sink) StreamID() uint64                 { return 0 }

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// authenticated is a control stream past its auth, over a broker of its own,
// in memory or with a store.
func authenticated(t *testing.T, store *storage.Store) (*control, *broker.Broker) {
	t.Helper()
	b := broker.New(broker.Config{Streams: stream.Config{Encoder: Encoder{}}, Caches: cache.Config{Storage: store}, Storage: store}, wallClock{})
	t.Cleanup(b.Close)
	durable := store != nil
	for _, err := range []error{
		b.AddTenant("t1"), b.AddNamespace("t1", "default"),
		b.AddStream(broker.StreamName{Tenant: "t1", Namespace: "default", Name: "s"}, broker.StreamOptions{Durable: durable}),
		b.AddCache(broker.CacheName{Tenant: "t1", Namespace: "default", Name: "c"}, broker.CacheOptions{Durable: durable}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	grants, err := auth.CompileGrants("t1", []string{"stream.publish:stream:t1/*", "cache.read:cache:t1/*", "cache.write:cache:t1/*", "group.consume:group:t1/*"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		MaxFrameBytes: wire.MaxFramePayload, PreauthMaxFrameBytes: 64 << 10, PreauthMaxStreams: 1, PublishWindow: 256,
		MaxOutstanding: DefaultMaxOutstanding, AckWait: time.Minute, ReplyWriteTimeout: time.Minute,
		Storage: store != nil,
	}
	srv := NewServer(cfg, b, nil, telemetry.New(telemetry.Options{}), wallClock{}, slog.New(slog.DiscardHandler))
	c := newConnection(srv, nil)
	s := newControl(c, sink{})
	s.principal = &auth.Principal{Tenant: "t1", Subject: "test", Grants: grants}
	s.identity = c.identify(s.principal)
	s.routes = routes{srv: srv, principal: s.principal}
	s.offer = wire.Offer{Flags: wire.KnownFlags, Features: wire.KnownFeatures &^ wire.FeatureAckOnCommit, HasFlags: true}
	s.window = cfg.PublishWindow
	return s, b
}

// round handles one frame and flushes its answer, as the request loop does.
func (s *control) round(t *testing.T, frame []byte) {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	s.out.beginRound()
	if v := s.handle(context.Background(), h, frame[wire.HeaderSize:]); v != goOn {
		t.Fatalf("verdict %d", v)
	}
	if err := s.out.flush(); err != nil {
		t.Fatal(err)
	}
}

func allocsOf(t *testing.T, what string, most float64, s *control, frame []byte, then func()) {
	t.Helper()
	one := func() {
		s.round(t, frame)
		then()
	}
	for range 3000 { // pools and the replay ring fill
		one()
	}
	if got := testing.AllocsPerRun(2000, one); got > most {
		t.Errorf("%s: %v allocations, want at most %v", what, got, most)
	}
}

// The paths of a publish, with fanout, and of a get allocate nothing in the
// steady state; a put allocates the value it keeps.
func TestAllocations(t *testing.T) {
	s, b := authenticated(t, nil)
	nothing := func() {}
	payloads := make([][]byte, 64)
	for i := range payloads {
		payloads[i] = make([]byte, 256)
	}
	publish := wire.Publish{
		Acked: true, RequestID: 1, AckMode: wire.AckPerBatch,
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("s"),
		Block: wire.AppendBlock(nil, payloads...),
	}
	allocsOf(t, "publish", 0, s, publish.Append(nil), nothing)

	st, err := b.Stream("t1", "default", "s")
	if err != nil {
		t.Fatal(err)
	}
	var subs []*stream.Subscription
	for range 10 {
		sub, err := st.Shard(0).Subscribe(t.Context(), stream.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, sub)
	}
	// Subscribers that keep up: what they hold goes back to the pools.
	allocsOf(t, "publish with fanout to 10", 0, s, publish.Append(nil), func() {
		for _, sub := range subs {
			pieces, err := sub.Poll()
			if err != nil || len(pieces) != 1 {
				t.Fatalf("%d pieces, %v", len(pieces), err)
			}
			for _, p := range pieces {
				p.Envelope.Frame(stream.WithOffsets)
				p.Release()
			}
		}
	})

	put := wire.AppendMessage(nil, &wire.CachePut{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("key"), Value: make([]byte, 256), RequestID: wire.Some[uint64](1)})
	get := wire.AppendMessage(nil, &wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("key"), RequestID: wire.Some[uint64](1)})
	allocsOf(t, "cache put", 1, s, put, nothing)
	allocsOf(t, "cache get", 0, s, get, nothing)
}

// On the log the session adds nothing to what the log allocates for a round:
// the answers owed are reused, whoever settles them.
func TestAllocationsOnTheLog(t *testing.T) {
	store, err := storage.Open(fstest.New(1), storage.Config{Root: "data", Log: shardlog.Options{Fsync: shardlog.OnCommit}}, storage.Deps{Clock: wallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, _ := authenticated(t, store)
	settled := func() {
		for _, l := range []*ledger{s.acks, s.turns} {
			for !l.idle() {
				runtime.Gosched()
			}
		}
	}
	publish := wire.Publish{
		Acked: true, RequestID: 1, AckMode: wire.AckPerBatch,
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("s"), Block: wire.AppendBlock(nil, make([]byte, 256)),
	}
	allocsOf(t, "publish", 2, s, publish.Append(nil), settled)
	put := wire.AppendMessage(nil, &wire.CachePut{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("key"), Value: make([]byte, 256), RequestID: wire.Some[uint64](1)})
	get := wire.AppendMessage(nil, &wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("key"), RequestID: wire.Some[uint64](1)})
	allocsOf(t, "cache put", 4, s, put, settled)
	allocsOf(t, "cache get", 4, s, get, settled)
}

// The session allocates nothing for an ack: what there is, is the write of the
// cursor.
func TestAllocationsOfAcks(t *testing.T) {
	store, err := storage.Open(fstest.New(1), storage.Config{Root: "data", Log: shardlog.Options{Fsync: shardlog.OnCommit}}, storage.Deps{Clock: wallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, b := authenticated(t, store)
	settled := func() {
		for _, l := range []*ledger{s.acks, s.turns} {
			for !l.idle() {
				runtime.Gosched()
			}
		}
	}
	const records = 4000
	publish := wire.Publish{
		Acked: true, RequestID: 1, AckMode: wire.AckPerBatch,
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("s"), Block: wire.AppendBlock(nil, make([][]byte, records)...),
	}
	s.round(t, publish.Append(nil))
	settled()
	g := wire.GroupRef{Tenant: "t1", Namespace: "default", Stream: "s", Group: "g"}
	sh, err := b.Stream("t1", "default", "s")
	if err != nil {
		t.Fatal(err)
	}
	ref := queue.Ref{Shard: sh.Shard(0), Group: "g"}
	if err := b.Groups().Ready(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	for taken := 0; taken < records; {
		got, err := b.Groups().Poll(t.Context(), ref, queue.PollOptions{MaxRecords: 1000, Visibility: time.Hour})
		if err != nil || len(got) == 0 {
			t.Fatalf("%d records, %v", len(got), err)
		}
		taken += len(got)
	}
	frames := make([][]byte, records)
	for i := range frames {
		frames[i] = wire.AppendMessage(nil, &wire.GroupAck{GroupRef: g, Offset: uint64(i), RequestID: uint64(i)})
	}
	next := 0
	ack := func() {
		s.round(t, frames[next])
		settled()
		next++
	}
	for range records / 2 {
		ack()
	}
	if got := testing.AllocsPerRun(records/2-1, ack); got > 12 {
		t.Errorf("ack: %v allocations, want at most 12", got)
	}
	allocsOf(t, "repeated ack", 1, s, frames[0], settled)
	if info, err := b.Groups().Describe(t.Context(), ref, queue.DescribeOptions{}); err != nil || info.Committed != uint64(next) {
		t.Fatalf("%d acks moved the cursor to %d, %v", next, info.Committed, err)
	}
}
