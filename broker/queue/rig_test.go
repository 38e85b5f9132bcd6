package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// campaign is the size of one: short, and up to long in longer ones.
func campaign(short, long int) int { return min(short*soak.Times(), long) }

// patience bounds what a test waits for.
const patience = 30 * time.Second

// A node is a stream with its groups on a file system, which can be closed or
// killed and opened again. Its logs sync their own files on commit, and
// compaction waits for no pacer.
type node struct {
	t     testing.TB
	fs    fs.FS
	log   shardlog.Options
	cfg   Config
	clock *handClock

	storage *storage.Store
	hub     *stream.Hub
	streams []*stream.Stream
	*Store
}

func newNode(t testing.TB, cfg Config) *node { return newNodeOn(t, fstest.New(1), cfg) }

func newNodeOn(t testing.TB, f fs.FS, cfg Config) *node {
	t.Helper()
	return newNodeWith(t, f, shardlog.Options{Fsync: shardlog.OnCommit}, cfg)
}

func newNodeWith(t testing.TB, f fs.FS, log shardlog.Options, cfg Config) *node {
	t.Helper()
	cfg.CompactionRate = -1
	n := &node{t: t, fs: f, log: log, cfg: cfg, clock: newHandClock()}
	t.Cleanup(n.stop)
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	var err error
	n.storage, err = storage.Open(n.fs, storage.Config{Root: "/data", Log: n.log, JournalBytes: -1}, storage.Deps{Clock: n.clock})
	if err != nil {
		n.t.Fatal(err)
	}
	n.cfg.Storage = n.storage
	n.hub = stream.NewHub(stream.Config{Logs: streamLogs{n.storage}}, n.clock)
	n.Store = NewStore(n.cfg, n.clock)
}

// stop closes everything; a file system that failed fails it.
func (n *node) stop() {
	if n.Store == nil {
		return
	}
	for _, s := range n.streams {
		n.end(s, stream.ErrRemoved)
	}
	n.Store.Close()
	n.hub.Close()
	_ = n.storage.Close()
	n.Store, n.streams = nil, nil
}

func (n *node) end(s *stream.Stream, cause error) {
	s.End(cause)
	for i := range s.Shards() {
		n.End(s.Shard(i), cause)
	}
}

// again stops, and starts on f.
func (n *node) again(f fs.FS) {
	n.t.Helper()
	n.stop()
	n.fs = f
	n.start()
}

type streamLogs struct{ store *storage.Store }

func (l streamLogs) OpenLog(ctx context.Context, name stream.Name, shard uint32, o stream.LogOptions) (*shardlog.Log, error) {
	key := storage.Key{Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, Shard: shard}
	return l.store.OpenLog(ctx, storage.Streams, key, storage.LogOptions{Retention: o.Retention, AfterRound: o.AfterRound})
}

// stream opens a durable stream of one shard.
func (n *node) stream(name string) *stream.Shard {
	n.t.Helper()
	return n.streamWith(name, stream.Options{})
}

func (n *node) streamWith(name string, o stream.Options) *stream.Shard {
	n.t.Helper()
	o.Durable = true
	s, err := n.hub.NewStream(stream.Name{Tenant: "t", Namespace: "n", Name: name}, o, stream.Owner{})
	if err != nil {
		n.t.Fatal(err)
	}
	n.streams = append(n.streams, s)
	sh := s.Shard(0)
	if err := sh.Ready(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	return sh
}

// A publishing is one batch on its way.
type publishing struct {
	shard *stream.Shard
	e     *stream.Envelope
	turn  stream.Turn
	done  chan error
	err   error
	app   shardlog.Appended
}

var publishLane sync.Mutex

// publish appends records of these payloads and waits until they are readable.
func (n *node) publish(sh *stream.Shard, payloads ...string) {
	n.t.Helper()
	block := binary.BigEndian.AppendUint32(nil, uint32(len(payloads)))
	for _, p := range payloads {
		block = append(binary.BigEndian.AppendUint32(block, uint32(len(p))), p...)
	}
	p := &publishing{shard: sh, done: make(chan error, 1)}
	p.e = n.hub.NewEnvelope(block, stream.Meta{Count: len(payloads), PayloadBytes: len(block) - 4 - 4*len(payloads)})
	publishLane.Lock()
	held, err := sh.Append(p.e, &stream.Append{}, &shardlog.Entry{}, p)
	publishLane.Unlock()
	if held || err != nil {
		n.t.Fatalf("publish: held %v, %v", held, err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			n.t.Fatal(err)
		}
	case <-time.After(patience):
		n.t.Fatal("a publish is not answered")
	}
}

// fill publishes count records, "#0" and on, in batches.
func (n *node) fill(sh *stream.Shard, count int) {
	n.t.Helper()
	_, first := sh.Bounds()
	for at := 0; at < count; {
		var batch []string
		for ; at < count && len(batch) < 500; at++ {
			batch = append(batch, fmt.Sprintf("#%d", int(first)+at))
		}
		n.publish(sh, batch...)
	}
}

func (p *publishing) Settled() {}

func (p *publishing) Committed(a shardlog.Appended, err error) {
	p.app, p.err = a, err
	p.turn.Task = p
	p.shard.Commit(&p.turn)
}

func (p *publishing) Take() bool {
	if p.err == nil {
		p.shard.Stamp(p.e, p.app, "")
		_, p.err = p.shard.Apply(p.e, p)
	}
	p.done <- p.err
	return false
}

// ref names a group and makes it ready.
func (n *node) ref(sh *stream.Shard, group string) Ref {
	n.t.Helper()
	r := Ref{Shard: sh, Group: group}
	if err := n.Ready(n.t.Context(), r); err != nil {
		n.t.Fatal(err)
	}
	return r
}

func holder(name string) tracker.Holder {
	return tracker.Holder{Consumer: name, Principal: "p", Connection: 1}
}

// take polls without waiting.
func (n *node) take(r Ref, most int) []Record {
	n.t.Helper()
	records, err := n.Poll(n.t.Context(), r, PollOptions{MaxRecords: most, Holder: holder("c")})
	if err != nil {
		n.t.Fatal(err)
	}
	return records
}

// takes polls, and the offsets and attempts must be these: "3 4x2".
func (n *node) takes(r Ref, most int, want string) []Record {
	n.t.Helper()
	records := n.take(r, most)
	if got := shown(records); got != want {
		n.t.Fatalf("polled %q, want %q", got, want)
	}
	return records
}

// shown is offsets, with the attempts from the second on.
func shown(records []Record) (s string) {
	for i, r := range records {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprint(r.Offset)
		if r.Attempts != 1 {
			s += fmt.Sprintf("x%d", r.Attempts)
		}
	}
	return s
}

// ack acks and waits for the answer.
func (n *node) ack(r Ref, offset uint64) error {
	n.t.Helper()
	done := make(wait, 1)
	n.Ack(r, offset, done)
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		n.t.Fatalf("ack of %d is not answered", offset)
		return nil
	}
}

func (n *node) acked(r Ref, offsets ...uint64) {
	n.t.Helper()
	for _, offset := range offsets {
		if err := n.ack(r, offset); err != nil {
			n.t.Fatalf("ack of %d: %v", offset, err)
		}
	}
}

func (n *node) describe(r Ref) Info {
	n.t.Helper()
	info, err := n.Describe(n.t.Context(), r, DescribeOptions{Held: true})
	if err != nil {
		n.t.Fatal(err)
	}
	return info
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// until waits for a condition that others make true.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// isA says that err is one of a type.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
