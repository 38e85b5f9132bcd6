package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// A run is one history against a store and the model at once.
type run struct {
	*node
	m      *model
	rng    *rand.Rand
	mem    *fstest.Mem
	sh     *stream.Shard
	r      Ref
	last   []Record // the newest poll's
	lines  []string
	batch  int  // records a publish of several is cut into
	fault  bool // the power may fail at any time
	floor  uint64
	listed map[uint64]bool // dead letters that were answered
}

const modelVisibility = 10 * time.Second

func newRun(t testing.TB, seed uint64, log shardlog.Options, batch int, maxAttempts uint32) *run {
	mem := fstest.New(seed)
	n := newNodeWith(t, mem, log, Config{Visibility: modelVisibility, MaxAttempts: maxAttempts, MaxVisibility: time.Hour})
	r := &run{
		node: n, m: newModel(maxAttempts), mem: mem, batch: batch,
		rng: rand.New(rand.NewPCG(seed, 7)), listed: map[uint64]bool{},
	}
	r.m.now = n.clock.Now().UnixNano()
	r.open()
	return r
}

func (r *run) open() {
	r.sh = r.stream("s")
	r.r = r.ref(r.sh, "g")
}

// step does one thing, and checks its answer against the model's.
func (r *run) step() {
	r.t.Helper()
	offset := uint64(0)
	if r.m.tail > 0 {
		low := r.m.committed - min(r.m.committed, 4)
		offset = low + r.rng.Uint64N(r.m.tail-low+1)
	}
	if len(r.last) > 0 && r.rng.IntN(3) > 0 {
		offset = r.last[r.rng.IntN(len(r.last))].Offset
	}
	attempts := uint32(0)
	if p := r.m.play[offset]; p != nil && r.rng.IntN(2) == 0 {
		attempts = p.attempts.low
	} else if r.rng.IntN(4) == 0 {
		attempts = uint32(r.rng.IntN(4))
	}
	ctx := r.t.Context()
	switch n := r.rng.IntN(100); {
	case n < 12:
		r.append(1 + r.rng.IntN(6))
	case n < 38:
		r.pollSome(1 + r.rng.IntN(5))
	case n < 60:
		want := r.m.ack(offset)
		r.answer("ack", offset, want, r.ack(r.r, offset))
		if want == "ok" && offset < r.m.committed {
			r.floor = max(r.floor, offset+1)
		}
	case n < 68:
		delay := time.Duration(r.rng.IntN(2)) * 5 * time.Second
		r.answer("nack", offset, r.m.nack(offset, attempts, delay), r.Nack(r.r, offset, attempts, delay))
	case n < 72:
		if attempts > 0 {
			_, err := r.Extend(r.r, offset, attempts, 20*time.Second)
			r.answer("extend", offset, r.m.extend(offset, attempts, 20*time.Second), err)
		}
	case n < 76:
		want := r.m.deadLetter(offset)
		r.answer("dead letter", offset, want, r.DeadLetter(ctx, r.r, offset))
		if want == "ok" {
			r.listed[offset] = true
			if offset < r.m.committed {
				r.floor = max(r.floor, offset+1)
			}
		}
	case n < 79:
		at := r.letter(offset)
		r.answer("discard", at, r.m.discard(at), r.Discard(ctx, r.r, at))
	case n < 83:
		at := r.letter(offset)
		r.answer("redrive", at, r.m.redrive(at), r.Redrive(ctx, r.r, at))
		delete(r.listed, at)
	case n < 85:
		_, err := r.Seek(ctx, r.r, Position{Kind: At, Offset: offset}, false)
		want := r.m.seek(offset)
		r.answer("seek", offset, want, err)
		if want == "ok" {
			r.floor, r.last = offset, nil
		}
	case n < 86:
		existed, err := r.Delete(ctx, r.r)
		r.must(err)
		if want := r.m.remove(); existed != want {
			r.fail("deleted: existed %v, want %v", existed, want)
		}
		r.lines = append(r.lines, "delete")
		r.floor, r.last = 0, nil
		clear(r.listed)
	case n < 90:
		r.Unclaim(r.r, r.last)
		for _, record := range r.last {
			r.m.unclaim(record.Offset, record.Attempts)
		}
		r.lines = append(r.lines, "unclaim")
		r.last = nil
	case n < 97:
		step := time.Duration(r.rng.IntN(6)) * time.Second
		r.clock.advance(step)
		r.m.now += int64(step)
		r.m.lapse()
		r.lines = append(r.lines, "advance "+step.String())
	default:
		r.restart()
	}
	r.check()
}

// letter is a dead letter, or at times any offset.
func (r *run) letter(offset uint64) uint64 {
	if dead := sortedKeys(r.m.dead); len(dead) > 0 && offset%4 != 0 {
		return dead[offset%uint64(len(dead))]
	}
	return offset
}

func sortedKeys(m map[uint64]bool) (keys []uint64) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (r *run) append(count int) {
	for count > 0 {
		n := min(count, r.batch)
		batch := make([]string, n)
		for i := range batch {
			batch[i] = fmt.Sprint("#", r.m.tail)
			r.m.tail++
		}
		r.publish(r.sh, batch...)
		count -= n
	}
	r.lines = append(r.lines, fmt.Sprint("publish to ", r.m.tail))
}

// pollSome polls and compares offsets, attempts and payloads.
func (r *run) pollSome(most int) {
	r.t.Helper()
	want := r.m.poll(most, modelVisibility)
	records := r.take(r.r, most)
	var got []uint64
	for _, record := range records {
		got = append(got, record.Offset)
		if string(record.Payload) != fmt.Sprint("#", record.Offset) {
			r.fail("offset %d holds %q", record.Offset, record.Payload)
		}
	}
	if !slices.Equal(got, want) {
		r.fail("polled %v, want %v", got, want)
	}
	for _, record := range records {
		p := r.m.play[record.Offset]
		if record.Attempts < p.attempts.low || record.Attempts > p.attempts.high {
			r.fail("offset %d for the %d. time, want %v", record.Offset, record.Attempts, p.attempts)
		}
		p.attempts = span{record.Attempts, record.Attempts}
		if delete(r.m.counts, record.Offset); record.Attempts >= 2 || p.redriven {
			r.m.counts[record.Offset] = p.attempts
		}
	}
	r.last = records
	r.lines = append(r.lines, "poll "+shown(records))
}

func (r *run) answer(what string, offset uint64, want string, err error) {
	r.t.Helper()
	got := "ok"
	if stale, ok := asStale(err); ok {
		got = map[bool]string{false: "stale", true: "retry"}[stale.Retry]
	} else if isA[*tracker.InvalidError](err) {
		got = "invalid"
	} else if isA[*NotListedError](err) {
		got = "not listed"
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		r.fail("%s of %d: %v, want %s", what, offset, err, want)
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %d: %s", what, offset, got))
}

// restart kills the process when everything decided is written, or cuts the
// power at any time.
func (r *run) restart() {
	r.t.Helper()
	r.last = nil
	if r.fault {
		r.mem = r.mem.Crash(r.rng.Uint64())
		r.again(r.mem)
		r.open()
		r.recover()
		return
	}
	g := r.find(r.r)
	until(r.t, "all is written", g.outboxQuiet)
	g.release()
	r.mem = r.mem.Kill()
	r.again(r.mem)
	r.open()
	r.m.restart(false)
	r.lines = append(r.lines, "restart")
}

// check compares what a description says.
func (r *run) check() {
	r.t.Helper()
	i := r.describe(r.r)
	dead, err := r.DeadLetters(r.t.Context(), r.r)
	r.must(err)
	got := fmt.Sprintf("committed %d, tail %d, %d in flight, %d owed, dead %v", i.Committed, i.Tail, i.InFlight, i.Owed, dead)
	if want := r.m.shown(); got != want {
		r.fail("described %s, want %s", got, want)
	}
	r.lines = append(r.lines, got)
}

func (r *run) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(r.lines[max(0, len(r.lines)-60):], "\n"))
}

// A history is the model's, and the same whatever the fsync mode, the size of a
// segment and the cut of the batches.
func TestHistoriesAreTheModels(t *testing.T) {
	const steps = 120
	for seed := range uint64(campaign(12, 10_000)) {
		var first []string
		for name, c := range map[string]struct {
			log   shardlog.Options
			batch int
		}{
			"on commit":      {shardlog.Options{Fsync: shardlog.OnCommit}, 100},
			"none":           {shardlog.Options{Fsync: shardlog.None}, 2},
			"periodic":       {shardlog.Options{Fsync: shardlog.Periodic, FsyncInterval: 3 * time.Second}, 100},
			"small segments": {shardlog.Options{Fsync: shardlog.OnCommit, SegmentBytes: 1024, IndexSpacing: 128}, 1},
		} {
			t.Run(fmt.Sprint(seed, " ", name), func(t *testing.T) {
				r := newRun(t, seed, c.log, c.batch, 3)
				for range steps {
					r.step()
				}
				if first == nil {
					first = r.lines
				} else if !slices.Equal(first, r.lines) {
					t.Fatal("another history")
				}
				r.stop()
			})
			if t.Failed() {
				return
			}
		}
	}
}

func asStale(err error) (*tracker.StaleError, bool) {
	stale, ok := err.(*tracker.StaleError)
	return stale, ok
}

// recover takes over from a group what a power loss left of it, which is bounded
// by what was answered and by what was decided.
func (r *run) recover() {
	r.t.Helper()
	i := r.describe(r.r)
	if i.Committed < r.floor || i.Committed > r.m.committed {
		r.fail("the cursor is at %d, answered %d, finished %d", i.Committed, r.floor, r.m.committed)
	}
	dead, err := r.DeadLetters(r.t.Context(), r.r)
	r.must(err)
	for offset := range r.listed {
		if r.m.dead[offset] && !slices.Contains(dead, offset) {
			r.fail("the dead letter of %d is lost", offset)
		}
	}
	for _, offset := range dead {
		if !r.m.dead[offset] {
			r.fail("a dead letter of %d", offset)
		}
	}
	m := r.m
	m.committed = i.Committed
	for offset := range m.dead {
		if !slices.Contains(dead, offset) {
			delete(m.dead, offset)
		}
	}
	m.restart(true)
	r.lines = append(r.lines, fmt.Sprint("power loss, committed ", i.Committed))
}

// The power fails at any time: the cursor is behind all that was answered and
// past nothing unfinished, no dead letter is lost or made up, and in the end
// every record was finished by somebody.
func TestHistoriesWithPowerLoss(t *testing.T) {
	const steps = 150
	for seed := range uint64(campaign(25, 10_000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			log := shardlog.Options{Fsync: shardlog.OnCommit}
			if seed%2 == 1 {
				log.SegmentBytes, log.IndexSpacing = 1024, 128
			}
			r := newRun(t, seed, log, 1+int(seed%5), 1<<30)
			r.fault = true
			for range steps {
				r.step()
			}
			for r.m.committed < r.m.tail || len(r.m.play) > 0 {
				r.clock.advance(time.Minute)
				r.m.now += int64(time.Minute)
				r.m.lapse()
				r.pollSome(5)
				for _, record := range r.last {
					r.answer("ack", record.Offset, r.m.ack(record.Offset), r.ack(r.r, record.Offset))
				}
				r.check()
			}
			r.stop()
		})
		if t.Failed() {
			return
		}
	}
}
