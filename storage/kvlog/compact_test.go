package kvlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// contents reads the whole map.
func contents(t fataler, m *Map) map[string]Item {
	t.Helper()
	s, err := m.Range(nil)
	if err != nil {
		t.Fatalf("range: %v", err)
	}
	all, err := s.Next(1 << 30)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	out := map[string]Item{}
	for _, c := range all {
		out[string(c.Key)] = Item{Value: c.Value, Version: c.Version, ExpiresAtMillis: c.ExpiresAtMillis}
	}
	return out
}

// fill writes keys, each three times, deletes a third of them, and lets
// some lapse.
func fill(t fataler, r *rig, keys int) {
	for round := range 3 {
		for i := range keys {
			w := put(fmt.Sprintf("key-%03d", i), fmt.Sprintf("%d-%0100d", round, i))
			if i%10 == 4 {
				w.ExpiresAtMillis = r.clock.millis() + 10
			}
			if i%10 == 5 {
				w.ExpiresAtMillis = r.clock.millis() + 1_000_000
			}
			r.write(t, w)
		}
	}
	for i := 0; i < keys; i += 3 {
		r.write(t, del(fmt.Sprintf("key-%03d", i)))
	}
	r.clock.advance(10 * time.Millisecond)
}

func TestCompactionKeepsWhatLivesAndDropsTheRest(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	fill(t, r, 100)
	want := contents(t, r.m)
	before, cut := r.log.Bytes(), r.m.Tail()
	r.compact(t)
	if r.m.Base() != cut || r.log.Bytes()*3 > before {
		t.Fatalf("base %d of cut %d, %d bytes of %d", r.m.Base(), cut, r.log.Bytes(), before)
	}
	for range 2 {
		wantContents(t, contents(t, r.m), want)
		if r.m.Len() != len(want) {
			t.Fatalf("%d keys, want %d", r.m.Len(), len(want))
		}
		r.reopen(t)
	}
	r.compact(t)
	wantContents(t, contents(t, r.m), want)
}

func wantContents(t fataler, got, want map[string]Item) {
	t.Helper()
	for key, item := range want {
		if g, ok := got[key]; !ok || string(g.Value) != string(item.Value) || g.Version != item.Version || g.ExpiresAtMillis != item.ExpiresAtMillis {
			t.Fatalf("%q holds %+v, %v, want %+v", key, g, ok, item)
		}
	}
	for key, item := range got {
		if _, ok := want[key]; !ok {
			t.Fatalf("%q came back as %+v", key, item)
		}
	}
}

// The power fails at each operation of a pass, in turn: nothing is lost, and
// nothing deleted comes back. In the mode that never syncs by itself too, for
// the pass flushes before it deletes.
func TestPowerLossAtEveryStepOfCompaction(t *testing.T) {
	for _, mode := range []shardlog.FsyncMode{shardlog.OnCommit, shardlog.None} {
		t.Run(mode.String(), func(t *testing.T) {
			first := newRig(t, func(r *rig) { r.logs.Fsync = mode }).cleanup(t)
			fill(t, first, 30)
			first.compact(t) // so that there is a key index to replace
			fill(t, first, 30)
			if err := first.log.Flush(); err != nil {
				t.Fatal(err)
			}
			want := contents(t, first.m)
			steps := 0
			for done := false; !done; steps++ {
				r := &rig{mem: first.mem.Clone(), clock: first.clock, logs: first.logs, opts: first.opts}
				r.open(t)
				r.faults.FailNth(steps+1, true, nil)
				done = r.m.Compact(context.Background()) == nil
				r.faults.Clear()
				for seed := range uint64(soak.Times()) {
					crashed := &rig{mem: r.mem.Clone().Crash(seed), clock: first.clock, logs: first.logs, opts: first.opts}
					crashed.open(t)
					wantContents(t, contents(t, crashed.m), want)
					crashed.compact(t)
					wantContents(t, contents(t, crashed.m), want)
					crashed.reopen(t)
					wantContents(t, contents(t, crashed.m), want)
					crashed.die(false, 0)
				}
				r.die(false, 0)
			}
			t.Logf("%d steps", steps)
			if steps < 10 {
				t.Fatalf("a pass of %d operations", steps)
			}
		})
	}
}

// pacerFunc is a Pacer.
type pacerFunc func(ctx context.Context, bytes int64) error

func (f pacerFunc) Wait(ctx context.Context, bytes int64) error { return f(ctx, bytes) }

func TestNoWriterWaitsForAPass(t *testing.T) {
	stalled := make(chan struct{})
	var once sync.Once
	r := newRig(t, func(r *rig) {
		r.opts.Pacer = pacerFunc(func(ctx context.Context, _ int64) error {
			once.Do(func() { close(stalled) })
			<-ctx.Done() // for ever, for all it knows
			return ctx.Err()
		})
	}).cleanup(t)
	fill(t, r, 100)
	ended := make(chan error, 1)
	go func() { ended <- r.m.Compact(context.Background()) }()
	<-stalled
	for i := range 500 {
		key := fmt.Sprintf("key-%03d", i%100)
		r.write(t, put(key, fmt.Sprint(i)))
		wantValue(t, r.m, key, fmt.Sprint(i))
	}
	select {
	case err := <-ended:
		t.Fatalf("the pass ended: %v", err)
	default:
	}
	r.m.Close() // stops it
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Fatalf("the pass ended with %v", err)
	}
}

// What happens to a key between the moment a pass reads its value and the
// moment it would copy it decides.
func TestACopyNeverLandsBehindANewerWrite(t *testing.T) {
	for name, staged := range map[string]bool{"committed": false, "staged": true} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			var pending []answered
			meddle := true
			r = newRig(t, func(g *rig) {
				g.opts.Pacer = pacerFunc(func(context.Context, int64) error {
					if !meddle {
						return nil
					}
					meddle = false
					gate := fstest.NewGate()
					if staged {
						g.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: ".log", Gate: gate})
					}
					for _, w := range []Write{put("overwritten", "new"), del("deleted"), put("renewed", "r2")} {
						end := make(answered, 1)
						g.m.Write(w, end)
						if !staged {
							end <- <-end
						}
						pending = append(pending, end)
					}
					// The copies are judged while those writes wait for the disk,
					// "kept" last: the one that may be copied.
					log := g.log // the rig has another once it is reopened
					claimed := log.Claimed()
					go func() {
						defer gate.Open()
						waitFor(t, "a copy", func() bool { return log.Claimed() > claimed })
					}()
					return nil
				})
			}).cleanup(t)
			r.write(t, put("deleted", "d"))
			r.write(t, put("overwritten", "old"))
			r.write(t, put("renewed", "r1").until(r.clock.millis()+1))
			r.write(t, put("kept", "k"))
			r.compact(t)
			for _, end := range pending {
				if a := <-end; a.err != nil {
					t.Fatal(a.err)
				}
			}
			for range 2 {
				wantAbsent(t, r.m, "deleted")
				wantValue(t, r.m, "overwritten", "new")
				wantValue(t, r.m, "renewed", "r2")
				wantValue(t, r.m, "kept", "k")
				r.reopen(t)
			}
		})
	}
}

// Writers, readers and passes at once; then the power fails. Each writer owns
// its keys, so it knows what a key has to hold.
func TestCompactionUnderLoadAndPowerLoss(t *testing.T) {
	const writers, keysEach = 4, 25
	r := newRig(t, func(r *rig) {
		r.opts.CompactFloor, r.opts.CompactFactor = 4<<10, 2
	})
	type last struct {
		acked, sent string // "" for deleted
	}
	state := map[string]last{}
	for round := range 6 * soak.Times() {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var writes atomic.Int64
		for w := range writers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(w)))
				for n := 0; ; n++ {
					key := fmt.Sprintf("%d/%d", w, rng.IntN(keysEach))
					value := fmt.Sprintf("%d-%d-%d", round, w, n)
					write := put(key, value)
					if rng.IntN(4) == 0 {
						value, write = "", del(key)
					}
					mu.Lock()
					s := state[key]
					s.sent = value
					state[key] = s
					mu.Unlock()
					if _, err := r.m.WriteWait(write); err != nil {
						return // the power is off
					}
					mu.Lock()
					state[key] = last{value, value}
					mu.Unlock()
					item, found, err := r.m.Get([]byte(key))
					if err == nil && (found != (value != "") || string(item.Value) != value) {
						t.Errorf("%q holds %q after %q was acknowledged", key, item.Value, value)
						return
					}
					writes.Add(1)
				}
			})
		}
		waitFor(t, "writes and passes", func() bool { return writes.Load() > 400 && r.m.Base() > 0 || t.Failed() })
		r.die(true, uint64(round))
		wg.Wait()
		r.open(t)
		for key, s := range state {
			item, found, err := r.m.Get([]byte(key))
			if err != nil {
				t.Fatalf("get %q: %v", key, err)
			}
			if got := string(item.Value); found != (got != "") || (got != s.acked && got != s.sent) {
				t.Fatalf("round %d: %q holds %q, acknowledged %q, sent %q", round, key, got, s.acked, s.sent)
			}
			state[key] = last{string(item.Value), string(item.Value)}
		}
		replayOrResnapshot(t, r.m)
	}
	r.die(false, 0)
}

// replayOrResnapshot: a watch from offset 0 either sees all or is told.
func replayOrResnapshot(t *testing.T, m *Map) {
	t.Helper()
	p, err := m.Changes(0, 100)
	var trimmed *shardlog.TrimmedError
	if err == nil {
		p.Release()
	} else if !errors.As(err, &trimmed) {
		t.Fatalf("changes: %v", err)
	}
}

// A get whose segment is trimmed under it reads the value where it is now.
func TestReadersNeverMeetATrimmedSegment(t *testing.T) {
	r := newRig(t, func(r *rig) { r.logs.SegmentBytes = 512 }).cleanup(t)
	for i := range 20 {
		r.write(t, put(fmt.Sprint(i), fmt.Sprint(i)))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint(i % 20)
				if item, found, err := r.m.Get([]byte(key)); err != nil || !found || string(item.Value) != key {
					t.Errorf("get %q = %q, %v, %v", key, item.Value, found, err)
					return
				}
			}
		})
	}
	for range 100 {
		r.compact(t)
	}
	close(stop)
	wg.Wait()
}

// hookedLog calls a hook before each read of one record.
type hookedLog struct {
	*shardlog.Log
	before func()
}

func (l *hookedLog) ReadAt(at shardlog.Location) (*shardlog.Page, error) {
	l.before()
	return l.Log.ReadAt(at)
}

// A pass, and perhaps a write, fall between the lookup and the read of a get.
func TestAGetBetweenTheStepsOfAPass(t *testing.T) {
	for name, between := range map[string]*Write{
		"moved": nil, "overwritten": {Key: []byte("k"), Value: []byte("new")}, "deleted": {Op: Delete, Key: []byte("k")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil).cleanup(t)
			r.m.Close()
			hooked := &hookedLog{Log: r.log, before: func() {}}
			var err error
			if r.m, err = Open(hooked, r.opts); err != nil {
				t.Fatal(err)
			}
			r.write(t, put("k", "old"))
			hooked.before = func() {
				hooked.before = func() {}
				if between != nil {
					r.write(t, *between)
				}
				r.compact(t)
			}
			item, found, err := r.m.Get([]byte("k"))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"moved": "old", "overwritten": "new", "deleted": ""}[name]
			if string(item.Value) != want || found != (want != "") {
				t.Fatalf("get = %q, %v, want %q", item.Value, found, want)
			}
		})
	}
}

// A key that is being written whenever the pass comes by keeps what lies below
// the cut: its write may fail yet.
func TestAPassThatCannotMoveAKeyTrimsNothing(t *testing.T) {
	var r *rig
	gate := fstest.NewGate()
	var once sync.Once
	end := make(answered, 1)
	r = newRig(t, func(g *rig) {
		g.opts.Pacer = pacerFunc(func(context.Context, int64) error {
			once.Do(func() {
				g.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Gate: gate, Err: fstest.ErrNoSpace, Times: 1})
				g.m.Write(put("k", "new"), end)
			})
			return nil
		})
	}).cleanup(t)
	r.write(t, put("k", "old"))
	passed := make(chan error, 1)
	go func() { passed <- r.m.Compact(context.Background()) }()
	select {
	case err := <-passed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the pass waits for a write")
	}
	if r.m.Base() != 0 {
		t.Errorf("trimmed to %d", r.m.Base())
	}
	gate.Open()
	if a := <-end; a.err == nil {
		t.Fatal("the write did not fail")
	}
	wantValue(t, r.m, "k", "old")
	r.compact(t) // the next one can
	if r.m.Base() == 0 {
		t.Fatal("nothing trimmed")
	}
	wantValue(t, r.m, "k", "old")
}

func TestGarbageStartsAPassByItself(t *testing.T) {
	r := newRig(t, func(r *rig) { r.opts.CompactFloor = 16 << 10 }).cleanup(t)
	for i := range 2000 {
		r.write(t, put(fmt.Sprint(i%10), strings.Repeat("x", 100)))
	}
	waitFor(t, "a pass", func() bool { return r.m.Base() > 0 && r.log.Bytes() < 64<<10 })
}

func TestAStaleTemporaryIndexIsOverwritten(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("k", "v"))
	temp := filepath.Join(shardDir, KeyIndexName+fs.TempSuffix)
	if err := fs.WriteDurable(r.mem, filepath.Join(shardDir, "x"), make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := r.mem.Rename(filepath.Join(shardDir, "x"), temp); err != nil {
		t.Fatal(err)
	}
	r.compact(t)
	if _, err := r.mem.Stat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("temporary file: %v", err)
	}
	if _, _, err := r.m.core.readKeyIndex(); err != nil {
		t.Fatal(err)
	}
}

func TestPaceSharesItsBytesOut(t *testing.T) {
	clock := newClock()
	p := NewPace(clock, 1000)
	if err := p.Wait(context.Background(), 500); err != nil { // the first pays afterwards
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- p.Wait(context.Background(), 250) }()
	}
	waitFor(t, "two waits", func() bool { return clock.waiting() == 2 })
	clock.advance(499 * time.Millisecond)
	if clock.waiting() != 2 {
		t.Fatal("let through early")
	}
	clock.advance(time.Millisecond)
	<-ended
	if clock.waiting() != 1 {
		t.Fatal("both let through at once")
	}
	clock.advance(250 * time.Millisecond)
	<-ended
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
