package storage

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

func TestStoreLocksItsRoot(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	_, err := Open(m, testConfig(), Deps{Clock: newClock()})
	if _, locked := errors.AsType[*fs.LockedError](err); !locked {
		t.Fatalf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, m, nil)
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"root":     func(c *Config) { c.Root = "" },
		"sealed":   func(c *Config) { c.MaxOpenSealed = -1 },
		"flushes":  func(c *Config) { c.MaxFlushes = -1 },
		"parallel": func(c *Config) { c.OpenParallel = -1 },
	} {
		cfg := testConfig()
		change(&cfg)
		if _, err := Open(fstest.New(1), cfg, Deps{Clock: newClock()}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Open(fstest.New(1), testConfig(), Deps{}); err == nil {
		t.Error("no clock: accepted")
	}
}

// TestLogsSurvive: what was appended is there after a restart, in each space by
// itself, though the shards have the same name.
func TestLogsSurvive(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	for i, space := range Spaces() {
		appendRecords(t, mustOpen(t, s, space, key(0), LogOptions{}), i+1, 10)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m = m.Crash(1)
	s = open(t, m, nil)
	for i, space := range Spaces() {
		if tail := mustOpen(t, s, space, key(0), LogOptions{}).Tail(); tail != uint64(i+1) {
			t.Errorf("%s: tail %d, want %d", space.Kind(), tail, i+1)
		}
	}
	if got := s.Stats(); got.OpenLogs != 5 || got.Segments != 5 || got.Bytes == 0 || got.Full {
		t.Errorf("%+v", got)
	}
}

// TestNewShardIsDurable: power fails right after the first append was answered,
// when root, space and shard were all new.
func TestNewShardIsDurable(t *testing.T) {
	for seed := range uint64(20) {
		m := fstest.New(seed)
		s := open(t, m, nil)
		appendRecords(t, mustOpen(t, s, Caches, key(0), LogOptions{}), 3, 10)
		s = open(t, m.Crash(seed), nil)
		if tail := mustOpen(t, s, Caches, key(0), LogOptions{}).Tail(); tail != 3 {
			t.Fatalf("seed %d: tail %d", seed, tail)
		}
	}
}

func TestOpenIsCoalesced(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	s := open(t, faults, nil)
	gate := faults.Block(fstest.OpCreate, segment.FileName(0))
	const callers = 20
	logs := make([]*shardlog.Log, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			logs[i], _ = s.OpenLog(context.Background(), Streams, key(0), LogOptions{Background: i%2 == 0})
		})
	}
	<-gate.Arrived()
	if got := s.Stats(); got.OpeningLogs != 1 || got.OpenLogs != 0 {
		t.Errorf("%+v", got)
	}
	gate.Open()
	wg.Wait()
	for _, log := range logs {
		if log == nil || log != logs[0] {
			t.Fatal("callers got different logs")
		}
	}
}

// TestCallerStopsWaiting: the opening goes on for the others.
func TestCallerStopsWaiting(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	s := open(t, faults, nil)
	gate := faults.Block(fstest.OpCreate, segment.FileName(0))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.OpenLog(ctx, Streams, key(0), LogOptions{})
		failed <- err
	}()
	<-gate.Arrived()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	gate.Open()
	mustOpen(t, s, Streams, key(0), LogOptions{})
}

// TestWantedLogsAreNotStarved: with every place for background opens taken and
// more waiting, a log that somebody waits for is opened at once, also one that
// was in that queue.
func TestWantedLogsAreNotStarved(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	s := open(t, faults, func(c *Config) { c.OpenParallel = 2 })
	var gates []*fstest.Gate
	for i := range 2 {
		gates = append(gates, faults.Block(fstest.OpCreate, filepath.Join(DirName(key(i)), segment.FileName(0))))
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := s.OpenLog(context.Background(), Streams, key(i), LogOptions{Background: true}); err != nil {
				t.Error(err)
			}
		})
		if i < 2 {
			<-gates[i].Arrived()
		}
	}
	within(t, "ten logs being opened", func() bool { return s.Stats().OpeningLogs == 10 })
	mustOpen(t, s, Streams, key(50), LogOptions{})
	mustOpen(t, s, Streams, key(9), LogOptions{})
	if got := s.Stats(); got.OpenLogs != 2 || got.OpeningLogs != 9 {
		t.Errorf("%+v", got)
	}
	for _, gate := range gates {
		gate.Open()
	}
	wg.Wait()
}

// TestRefusedShardStopsNobody: it says which file and where, the others serve,
// and it opens once it has been put right.
func TestRefusedShardStopsNobody(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	for i := range 3 {
		appendRecords(t, mustOpen(t, s, Streams, key(i), LogOptions{}), 1, 100)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := damage(t, m, Streams, key(1))
	s = open(t, m, nil)
	for i := range 3 {
		log, err := s.OpenLog(t.Context(), Streams, key(i), LogOptions{})
		if i != 1 {
			if err != nil {
				t.Fatal(err)
			}
			appendRecords(t, log, 1, 10)
			continue
		}
		corrupt, ok := errors.AsType[*segment.CorruptionError](err)
		if !ok || corrupt.Path != path || corrupt.Position != segment.HeaderSize {
			t.Fatalf("%v", err)
		}
	}
	damage(t, m, Streams, key(1)) // back again
	mustOpen(t, s, Streams, key(1), LogOptions{})
}

func TestDirectoryOfAnother(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	mustOpen(t, s, Streams, key(0), LogOptions{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shardDir(testRoot, Streams, key(0)), segment.IdentityFile)
	other := slotKey{Caches, key(7)}.identity().Append(nil)
	if err := fs.WriteDurable(m, path, other); err != nil {
		t.Fatal(err)
	}
	s = open(t, m, nil)
	_, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{})
	mismatch, ok := errors.AsType[*MismatchError](err)
	if !ok || mismatch.Want != "stream acme/default/s0/0" || mismatch.Found != "cache acme/default/s7/0" {
		t.Fatalf("%v", err)
	}
	if err := m.FlipBit(path, 70); err != nil {
		t.Fatal(err)
	}
	_, err = s.OpenLog(t.Context(), Streams, key(0), LogOptions{})
	if corrupt, ok := errors.AsType[*segment.CorruptionError](err); !ok || corrupt.Path != path {
		t.Fatalf("%v", err)
	}
	// One that is lost says nothing, and is written again.
	if err := m.Drop(path); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, s, Streams, key(0), LogOptions{})
	if _, err := m.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestProjectionsHaveNoRetention: what they hold is the latest of each key, and
// old does not mean done with.
func TestProjectionsHaveNoRetention(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	for _, space := range Spaces() {
		log := mustOpen(t, s, space, key(0), LogOptions{Retention: shardlog.Retention{MaxBytes: 6000}})
		for range 10 {
			appendRecords(t, log, 1, 2000)
		}
		if err := log.EnforceRetention(); err != nil {
			t.Fatal(err)
		}
		if trimmed := log.Base() > 0; trimmed != (space == Streams) {
			t.Errorf("%s: base %d", space.Kind(), log.Base())
		}
	}
}

func TestUnknownSpace(t *testing.T) {
	s := open(t, fstest.New(1), nil)
	if _, err := s.OpenLog(t.Context(), "../elsewhere", key(0), LogOptions{}); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Fatalf("%v", err)
	}
}

func TestCloseLog(t *testing.T) {
	s := open(t, fstest.New(1), nil)
	first := mustOpen(t, s, Streams, key(0), LogOptions{})
	appendRecords(t, first, 2, 10)
	if err := s.CloseLog(t.Context(), Streams, key(0)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseLog(t.Context(), Streams, key(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.AppendWait(entry(1, 1)); !errors.Is(err, shardlog.ErrClosed) {
		t.Errorf("append after the closing: %v", err)
	}
	if got := s.Stats(); got.OpenLogs != 0 {
		t.Errorf("%+v", got)
	}
	second := mustOpen(t, s, Streams, key(0), LogOptions{})
	if second == first || second.Tail() != 2 {
		t.Errorf("tail %d", second.Tail())
	}
	// Closed by its user instead.
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if third := mustOpen(t, s, Streams, key(0), LogOptions{}); third == second || third.Tail() != 2 {
		t.Errorf("tail %d", third.Tail())
	}
}

func TestClosedStore(t *testing.T) {
	s := open(t, fstest.New(1), nil)
	log := mustOpen(t, s, Streams, key(0), LogOptions{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("open: %v", err)
	}
	if _, err := log.AppendWait(entry(1, 1)); !errors.Is(err, shardlog.ErrClosed) {
		t.Errorf("append: %v", err)
	}
}

// TestCloseTellsWhatFailed: one log that cannot be made durable does not keep
// the others from being closed.
func TestCloseTellsWhatFailed(t *testing.T) {
	m := fstest.New(1)
	faults := fstest.NewFaults(m)
	s := open(t, faults, func(c *Config) { c.Log.Fsync = shardlog.None })
	for i := range 5 {
		appendRecords(t, mustOpen(t, s, Streams, key(i), LogOptions{}), 1, 10)
	}
	faults.FailSync(filepath.Join(DirName(key(2)), segment.FileName(0)), 0)
	err := s.Close()
	if _, ok := errors.AsType[*shardlog.SyncFailedError](err); !ok {
		t.Fatalf("%v", err)
	}
	faults.Clear()
	s = open(t, m.Crash(3), nil)
	for _, i := range []int{0, 1, 3, 4} {
		if tail := mustOpen(t, s, Streams, key(i), LogOptions{}).Tail(); tail != 1 {
			t.Errorf("log %d: tail %d", i, tail)
		}
	}
}

// TestFailedLogIsTold: a log that takes no writes any more makes the store not
// ready, and stays so until a restart.
func TestFailedLogIsTold(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	s := open(t, faults, func(c *Config) { c.JournalBytes = -1 })
	log := mustOpen(t, s, Streams, key(0), LogOptions{})
	mustOpen(t, s, Streams, key(1), LogOptions{})
	if err := s.Healthy(); err != nil {
		t.Fatal(err)
	}
	faults.FailSync(DirName(key(0)), 1)
	if _, err := log.AppendWait(entry(1, 1)); err == nil {
		t.Fatal("appended without a sync")
	}
	if _, ok := errors.AsType[*shardlog.SyncFailedError](s.Healthy()); !ok {
		t.Errorf("healthy: %v", s.Healthy())
	}
	if got := s.Stats(); got.FailedLogs != 1 || got.OpenLogs != 2 {
		t.Errorf("%+v", got)
	}
	if again := mustOpen(t, s, Streams, key(0), LogOptions{}); again != log {
		t.Error("a failed log was opened again")
	}
}

// TestLittleSpace (BR-54): streams are refused before the disk is full, what
// frees space and moves positions goes on, and it heals by itself.
func TestLittleSpace(t *testing.T) {
	m := fstest.New(1)
	clock := newClock()
	cfg := testConfig()
	cfg.SoftFreeBytes = 1 << 20
	s, err := Open(m, cfg, Deps{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	logs := make(map[Space]*shardlog.Log)
	for _, space := range Spaces() {
		logs[space] = mustOpen(t, s, space, key(0), LogOptions{Retention: shardlog.Retention{MaxBytes: 5000}})
		for range 4 {
			appendRecords(t, logs[space], 1, 2000)
		}
	}
	m.SetFree(1<<20 - 1)
	clock.advance(checkEvery)
	for space, log := range logs {
		_, err := log.AppendWait(entry(1, 10))
		full, ok := errors.AsType[*shardlog.FullError](err)
		if ok != (space == Streams) || !ok && err != nil {
			t.Errorf("%s: %v", space.Kind(), err)
		}
		if ok {
			if low, ok := errors.AsType[*LowSpaceError](full); !ok || low.Free != 1<<20-1 || low.Wanted != 1<<20 {
				t.Errorf("%v", err)
			}
		}
	}
	if !s.Full() || !s.Stats().Full || s.Healthy() == nil {
		t.Errorf("full %t, healthy %v", s.Full(), s.Healthy())
	}
	stream := logs[Streams]
	tail := stream.Tail()
	if err := stream.EnforceRetention(); err != nil || stream.Base() == 0 {
		t.Errorf("retention: base %d, %v", stream.Base(), err)
	}
	if page, err := stream.Read(stream.Base(), 1<<20, 100); err != nil || page.Next != tail {
		t.Errorf("read: %v", err)
	} else {
		page.Release()
	}
	if err := stream.Truncate(tail - 1); err != nil {
		t.Errorf("truncate: %v", err)
	}
	m.SetFree(1 << 20)
	clock.advance(checkEvery)
	appendRecords(t, stream, 1, 10)
	if s.Full() || s.Healthy() != nil {
		t.Errorf("full %t, healthy %v", s.Full(), s.Healthy())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Minute) // nothing looks any more
}

// TestSegmentSizes: what compacts has segments that are quick to delete.
func TestSegmentSizes(t *testing.T) {
	for _, c := range []struct {
		configured, streams, caches int64
	}{
		{0, shardlog.DefaultSegmentBytes, 64 << 20},
		{1 << 30, 1 << 30, 64 << 20},
		{1 << 20, 1 << 20, 1 << 20},
	} {
		s := open(t, fstest.New(1), func(cfg *Config) { cfg.Log.SegmentBytes = c.configured })
		for space, want := range map[Space]int64{Streams: c.streams, Caches: c.caches, Counters: c.caches, Groups: c.caches} {
			got := s.logOptions(slotKey{space, key(0)}, LogOptions{}).SegmentBytes
			if space == Streams && c.configured == 0 {
				want = 0 // the log's own default
			}
			if got != want {
				t.Errorf("%d configured: segments of %q have %d bytes, want %d", c.configured, space, got, want)
			}
		}
	}
}
