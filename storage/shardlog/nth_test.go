package shardlog

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// TestErrorAtEveryCall fails the n-th call to the file system, for every n that
// a life of a log comes to: creation, appends, rolls with their indices, a flush,
// a close. Never is a batch acknowledged that is not there afterwards, nor one
// there that was reported as failed (reliability 5).
func TestErrorAtEveryCall(t *testing.T) {
	rules := []fstest.Rule{
		{Times: 1, Err: fstest.ErrIO},
		{Times: 1, Err: fstest.ErrNoSpace, Half: true},
		{Times: 1, Err: fstest.ErrIO, After: true},
		{Err: fstest.ErrIO, Half: true},
		{Err: fstest.ErrNoSpace},
	}
	for i, rule := range rules {
		for n := 0; ; n++ {
			rule.Skip = n
			if !errorAtCall(t, uint64(i*1000+n), rule) {
				if n < 60 {
					t.Fatalf("only %d calls", n)
				}
				break
			}
		}
	}
}

func errorAtCall(t *testing.T, seed uint64, rule fstest.Rule) (hit bool) {
	f := &fixture{t: t, mem: fstest.New(seed), clock: newTestClock()}
	f.opts = Options{Name: "n", Clock: f.clock, Fsync: OnCommit, SegmentBytes: 700, IndexSpacing: 100, Producers: true}
	f.faults = fstest.NewFaults(f.mem)
	if err := fs.MkdirDurable(f.mem, "logs"); err != nil { // the store's root
		t.Fatal(err)
	}
	injected := f.faults.Inject(rule)
	acked, unknown := uint64(0), false
	for f.tryOpen() != nil {
		if rule.Times == 0 {
			break
		}
	}
	if f.log != nil {
		for range 12 {
			_, err := f.log.AppendWait(numbered(acked, 1, 100))
			var poisoned *SyncFailedError
			if errors.As(err, &poisoned) {
				unknown = unknown || poisoned.Unknown
				break
			}
			if err == nil {
				acked++
			}
		}
		_ = f.log.Flush()
		_ = f.log.Close()
	}
	hit = injected.Hits() > 0
	for _, mem := range []*fstest.Mem{f.mem.Clone().Kill(), f.mem.Crash(seed)} {
		f.on(mem)
		tail := f.log.Tail()
		if tail != acked && !(unknown && tail == acked+1) {
			t.Fatalf("%v: %d acknowledged (one unknown: %v), the log holds %d", rule, acked, unknown, tail)
		}
		f.checkNumbered(0, tail)
		f.fill(2, 1, 50)
		if err := f.log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return hit
}
