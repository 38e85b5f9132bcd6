package shardlog

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
	"github.com/felixlog/felix/storage/fs/fstest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clockSteps are how a test sets the clock.
var clockSteps = map[string]func(*stepped.Clock){
	"an hour forth":   func(c *stepped.Clock) { c.Step(time.Hour) },
	"an hour back":    func(c *stepped.Clock) { c.Step(-time.Hour) },
	"ten years forth": func(c *stepped.Clock) { c.Step(87_600 * time.Hour) },
	"to 1970":         func(c *stepped.Clock) { c.Set(time.Unix(0, 0)) },
}

var setBack = []string{"an hour back", "to 1970"}

// steppedLog is a fixture whose clock can be set, in a bubble of synctest.
func steppedLog(t *testing.T, o Options) (*fixture, *stepped.Clock) {
	t.Helper()
	clock := new(stepped.Clock)
	f := &fixture{t: t, mem: fstest.New(1), opts: o}
	f.opts.Name, f.opts.Clock, f.opts.Began = "t/ns/s/0", clock, clock.Now()
	f.faults = fstest.NewFaults(f.mem)
	f.open()
	return f, clock
}

// TestRetentionOnASteppedClock sets the clock for a while and puts it right, with
// the log closed and opened meanwhile or not: nothing goes before it is as old as
// records may be, and everything goes then.
func TestRetentionOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		for _, reopened := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reopened %t", name, reopened), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, clock := steppedLog(t, Options{SegmentBytes: 500, Retention: Retention{MaxAge: time.Hour}})
					defer func() { must(t, f.log.Close()) }()
					stays := func(when string, base uint64) {
						t.Helper()
						time.Sleep(2 * DefaultSweepInterval)
						if got := f.log.Base(); got != base {
							t.Fatalf("%s: the log begins at %d, want %d", when, got, base)
						}
					}
					f.fill(6, 1, 100) // two a segment
					set(clock)
					if reopened {
						f.reopen()
					}
					stays("after the step", 0)
					time.Sleep(20 * time.Minute)
					f.fill(6, 1, 100)
					stays("after records at the wrong time", 0)
					clock.Set(time.Now())
					first := uint64(6)
					if reopened {
						f.reopen()
						if slices.Contains(setBack, name) {
							first = 10 // their times stood still, and are all that is known of them
						}
					}
					stays("put right", 0)
					time.Sleep(34 * time.Minute)
					stays("an hour after the first", first)
					f.fill(2, 1, 100)
					time.Sleep(26 * time.Minute)
					stays("an hour after the others", 12)
				})
			})
		}
	}
}

// A clock that was wrong when the process began and is put right before retention
// looks takes nothing either.
func TestRetentionOnAClockPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, clock := steppedLog(t, Options{SegmentBytes: 500, Retention: Retention{MaxAge: time.Hour}})
		defer func() { must(t, f.log.Close()) }()
		f.fill(6, 1, 100)
		clock.Step(87_600 * time.Hour)
		f.opts.Began = clock.Now() // another process
		f.reopen()
		clock.Set(time.Now())
		time.Sleep(2 * DefaultSweepInterval)
		if got := f.log.Base(); got != 0 {
			t.Errorf("the log begins at %d", got)
		}
	})
}

// TestRecordTimesOnASteppedClock sets the clock to and fro, opens the log anew
// after each step, and once takes away all that was written: no time of a record
// is before that of an earlier one, and by time they are found in order.
func TestRecordTimesOnASteppedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, clock := steppedLog(t, Options{SegmentBytes: 500})
		defer func() { must(t, f.log.Close()) }()
		last := uint64(0)
		record := func(step string) {
			t.Helper()
			for range 3 {
				app, err := f.log.AppendWait(entry("r"))
				must(t, err)
				if app.TimestampMicros < max(last, 1) {
					t.Fatalf("%s: record %d has time %d, the one before it %d", step, app.First, app.TimestampMicros, last)
				}
				if found, ok, err := f.log.OffsetForTime(app.TimestampMicros); err != nil || !ok || found > app.First || app.TimestampMicros > last && found != app.First {
					t.Fatalf("%s: time %d of record %d is found at %d, %t, %v", step, app.TimestampMicros, app.First, found, ok, err)
				}
				last = app.TimestampMicros
				time.Sleep(time.Second)
			}
		}
		clock.Set(time.Unix(-60, 0))
		record("before 1970")
		for _, name := range []string{"to 1970", "an hour back", "an hour forth"} {
			clock.Set(time.Now())
			record("right")
			clockSteps[name](clock)
			record(name)
			f.reopen()
			record(name + ", opened anew")
		}
		clock.Set(time.Now())
		must(t, f.log.RollNow())
		must(t, f.log.TrimBefore(f.log.Tail()))
		if f.log.Base() != f.log.Tail() {
			t.Fatal("something is left")
		}
		f.reopen()
		record("right, after all before was taken away")
		clock.Step(87_600 * time.Hour)
		record("ten years forth")
		clock.Set(time.Now())
		record("right again")
	})
}

// jumpingClock is set an hour forth and back by every reading.
type jumpingClock struct{ stepped.Clock }

func (c *jumpingClock) Now() time.Time {
	c.Set(time.Now().Add(time.Hour - c.Off()))
	return c.Clock.Now()
}

// A step within an append is no time that the append took.
func TestAppendDurationOnASteppedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(fstest.New(1), testDir, Options{Name: "t/ns/s/0", Clock: new(jumpingClock)})
		must(t, err)
		defer func() { must(t, l.Close()) }()
		for range 5 {
			_, err := l.AppendWait(entry("r"))
			must(t, err)
		}
		if took := l.metrics.AppendDuration.Snapshot(); took.Count != 5 || took.Sum != 0 {
			t.Errorf("%d appends took %v, where no time passed", took.Count, took.Sum)
		}
	})
}
