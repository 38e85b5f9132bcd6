package kvlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
	"pgregory.net/rapid"
)

// counterRig is counters over the log of a rig.
type counterRig struct {
	*rig
	c *Counters
}

func newCounterRig(t fataler, change func(*rig)) *counterRig {
	r := &counterRig{rig: &rig{mem: fstest.New(1), clock: newClock()}}
	r.logs = shardlog.Options{Name: "t/n/c/0", SegmentBytes: 1 << 10, Fsync: shardlog.OnCommit, Projection: true}
	r.opts = Options{CompactFloor: -1}
	if change != nil {
		change(r.rig)
	}
	r.open(t)
	return r
}

func (r *counterRig) open(t fataler) {
	t.Helper()
	var err error
	r.faults = fstest.NewFaults(r.mem)
	r.logs.Clock = r.clock
	if r.log, err = shardlog.Open(r.faults, "shard", r.logs); err != nil {
		t.Fatalf("open: %v", err)
	}
	r.opts.Dir, r.opts.FS, r.opts.Clock = "shard", r.faults, r.clock
	if r.c, err = OpenCounters(r.log, r.opts); err != nil {
		t.Fatalf("open: %v", err)
	}
}

func (r *counterRig) die(power bool, seed uint64) {
	var next *fstest.Mem
	if power {
		next = r.mem.Crash(seed)
	} else {
		next = r.mem.Kill()
	}
	r.c.Close()
	_ = r.log.Close()
	r.mem = next
}

func (r *counterRig) want(t fataler, key string, want int64) {
	t.Helper()
	if sum, ok, err := r.c.Get([]byte(key)); err != nil || !ok || sum != want {
		t.Fatalf("%q is %d, %v, %v, want %d", key, sum, ok, err, want)
	}
}

func TestCountersAddUp(t *testing.T) {
	r := newCounterRig(t, nil)
	defer func() { r.die(false, 0) }()
	if _, ok, err := r.c.Get([]byte("k")); ok || err != nil {
		t.Fatalf("a counter never written: %v, %v", ok, err)
	}
	if sum, err := r.c.AddWait([]byte("zero"), 0); sum != 0 || err != nil {
		t.Fatal(sum, err)
	}
	for i := range int64(100) {
		if sum, err := r.c.AddWait([]byte("k"), i-10); err != nil || sum != i*(i+1)/2-10*(i+1) {
			t.Fatalf("sum %d, %v", sum, err)
		}
	}
	if r.c.Len() != 2 {
		t.Fatalf("%d counters", r.c.Len())
	}
	before := r.log.Bytes()
	if err := r.c.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r.log.Base() == 0 || r.log.Bytes()*4 > before {
		t.Fatalf("base %d, %d bytes of %d", r.log.Base(), r.log.Bytes(), before)
	}
	r.want(t, "k", 3950)
	r.want(t, "zero", 0)
	r.die(true, 1)
	r.open(t)
	r.want(t, "k", 3950)
	r.want(t, "zero", 0)
	if sum, err := r.c.AddWait([]byte("k"), 50); err != nil || sum != 4000 {
		t.Fatal(sum, err)
	}
	var invalid *InvalidWriteError
	if _, err := r.c.AddWait(nil, 1); !errors.As(err, &invalid) {
		t.Fatal(err)
	}
}

func TestOverflowIsRefusedAgainstTheStagedSum(t *testing.T) {
	l := &fakeLog{}
	c, err := OpenCounters(l, Options{Dir: "x", FS: fstest.New(1), Clock: newClock(), CompactFloor: -1})
	if err != nil {
		t.Fatal(err)
	}
	end := make(added, 10)
	send := func(delta int64) { c.Add([]byte("k"), delta, end) }
	send(math.MaxInt64 - 1)
	send(1)
	send(1) // past the range, if the two before commit
	select {
	case a := <-end:
		t.Fatalf("answered before the commit: %+v", a)
	default:
	}
	l.commit()
	<-end
	if a := <-end; a.sum != math.MaxInt64 || a.err != nil {
		t.Fatalf("%+v", a)
	}
	var over *OverflowError
	if a := <-end; !errors.As(a.err, &over) || over.Sum != math.MaxInt64 || over.Delta != 1 {
		t.Fatalf("%+v", a)
	}
	if l.appended != 2 {
		t.Fatalf("%d appends", l.appended)
	}
	// Refused against a sum that was never reached: an error, but not that one.
	send(-5)
	l.commit()
	<-end
	send(5)
	send(1)
	l.fail(errDisk)
	<-end
	if a := <-end; !errors.Is(a.err, errDisk) {
		t.Fatalf("%+v", a)
	}
	send(1)
	l.commit()
	if a := <-end; a.sum != math.MaxInt64-4 || a.err != nil {
		t.Fatalf("%+v", a)
	}
	for _, c := range []struct {
		a, b int64
		ok   bool
	}{{math.MinInt64, -1, false}, {math.MinInt64, 0, true}, {math.MinInt64, math.MaxInt64, true}, {0, math.MinInt64, true}, {-1, math.MinInt64, false}, {1, math.MaxInt64, false}} {
		if _, ok := add(c.a, c.b); ok != c.ok {
			t.Errorf("%d + %d: %v", c.a, c.b, ok)
		}
	}
}

// Sums after crashes lie between what was acknowledged and what was sent.
func TestCounterModel(t *testing.T) {
	for range soak.Times() {
		rapid.Check(t, func(t *rapid.T) {
			r := newCounterRig(t, func(r *rig) {
				r.opts.CompactFloor = rapid.SampledFrom([]int64{-1, 2 << 10}).Draw(t, "floor")
				r.opts.CompactFactor = 2
			})
			defer func() { r.die(false, 0) }()
			sums := map[string]int64{}
			for range rapid.IntRange(1, 20).Draw(t, "steps") {
				switch rapid.SampledFrom([]string{"add", "add", "add", "compact", "crash", "write fails"}).Draw(t, "step") {
				case "add":
					counterBurst(t, r, sums, func() {})
				case "compact":
					if err := r.c.Compact(context.Background()); err != nil {
						t.Fatalf("compact: %v", err)
					}
				case "crash":
					power, seed := rapid.Bool().Draw(t, "power"), rapid.Uint64().Draw(t, "seed")
					counterBurst(t, r, sums, func() { r.die(power, seed) })
				case "write fails":
					r.faults.FailWrite(".log", 1, nil)
					counterBurst(t, r, sums, func() {})
					r.faults.Clear()
				}
				for key, sum := range sums {
					r.want(t, key, sum)
				}
			}
		})
	}
}

// counterBurst sends deltas, lets end happen and takes over the sums there are.
func counterBurst(t *rapid.T, r *counterRig, sums map[string]int64, end func()) {
	type one struct {
		key   string
		delta int64
		end   added
	}
	var all []one
	for range rapid.IntRange(1, 8).Draw(t, "burst") {
		o := one{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), rapid.Int64Range(-5, 5).Draw(t, "delta"), make(added, 1)}
		all = append(all, o)
		r.c.Add([]byte(o.key), o.delta, o.end)
	}
	end()
	crashed := isClosed(r.c)
	may := map[string][]int64{}
	for key, sum := range sums {
		may[key] = []int64{sum}
	}
	for _, o := range all {
		a := <-o.end
		was := may[o.key]
		if len(was) == 0 {
			was = []int64{0}
		}
		if a.err == nil {
			if !slices.Contains(was, a.sum-o.delta) {
				t.Fatalf("add %d to %q: %d, it was one of %v", o.delta, o.key, a.sum, was)
			}
			may[o.key] = []int64{a.sum}
			continue
		}
		if crashed { // it may be there all the same
			may[o.key] = append(was, was[len(was)-1]+o.delta)
		}
	}
	if crashed {
		r.open(t)
	}
	for key, among := range may {
		sum, _, err := r.c.Get([]byte(key))
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if !slices.Contains(among, sum) {
			t.Fatalf("%q is %d, want one of %v", key, sum, among)
		}
		if _, ok, _ := r.c.Get([]byte(key)); ok {
			sums[key] = sum
		}
	}
}

func isClosed(c *Counters) bool {
	_, _, err := c.Get([]byte("x"))
	return errors.Is(err, ErrClosed)
}

func TestCountersUnderLoad(t *testing.T) {
	r := newCounterRig(t, func(r *rig) { r.opts.CompactFloor, r.opts.CompactFactor = 2<<10, 2 })
	const workers, each = 4, 300
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				for _, key := range []string{"shared", fmt.Sprint(w)} {
					if _, err := r.c.AddWait([]byte(key), int64(i)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if r.log.Base() == 0 {
		t.Error("no pass ran")
	}
	r.die(true, 3)
	r.open(t)
	const sum = each * (each - 1) / 2
	r.want(t, "shared", workers*sum)
	for w := range workers {
		r.want(t, fmt.Sprint(w), sum)
	}
	r.die(false, 0)
}

// A sum in the key index already holds deltas that replay meets again.
func TestACounterIndexWrittenUnderWritersCountsOnce(t *testing.T) {
	r := newCounterRig(t, nil)
	add := func(key string, delta int64) {
		t.Helper()
		if _, err := r.c.AddWait([]byte(key), delta); err != nil {
			t.Fatal(err)
		}
	}
	// So many that "a" and "z" are written in different pieces.
	add("a", 1)
	filler := make(added, 2*walkSlots)
	for i := range cap(filler) {
		r.c.Add(fmt.Append(nil, i), 1, filler)
	}
	add("z", 1)
	gate := fstest.NewGate()
	r.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: KeyIndexName, Times: 1, Gate: gate})
	written := make(chan error, 1)
	go func() { written <- r.c.core.writeKeyIndex(t.Context()) }()
	<-gate.Arrived()
	for range 50 {
		add("a", 1)
		add("z", 2)
	}
	gate.Open()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	r.die(true, 5)
	r.open(t)
	x, _, err := r.c.core.readKeyIndex()
	if err != nil {
		t.Fatal(err)
	}
	if sum := x.get([]byte("z")).entry.word; sum != 101 {
		t.Fatalf("the index has %d: it was not written under writers", sum)
	}
	r.want(t, "a", 51)
	r.want(t, "z", 101)
	r.die(false, 0)
}
