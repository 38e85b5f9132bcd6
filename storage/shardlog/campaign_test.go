package shardlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// times is how often a campaign repeats: n by default, a quarter of it under the
// race detector.
func times(t testing.TB, n uint64) uint64 {
	if raceEnabled {
		n = max(n/4, 1)
	}
	return n * uint64(soak.Times())
}

// campaign drives one log with random operations through faults, kills and power
// losses, and knows what it may hold.
type campaign struct {
	*fixture
	rng   *rand.Rand
	trace []string

	// kept are the records from offset 0 on that the log said it has, also those
	// trimmed since; maybe are those after them whose outcome is unknown.
	kept  []string
	maybe []string
	floor uint64 // records below survive a power loss
	base  uint64
	made  int
}

func newCampaign(t *testing.T, seed uint64) *campaign {
	rng := rand.New(rand.NewPCG(seed, 0xfe11))
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	o := Options{
		Fsync:                    FsyncMode(rng.IntN(3)),
		SegmentBytes:             int64(pick(300, 1000, 5000, 1<<20)),
		IndexSpacing:             pick(1, 200, 4096),
		RolloverThresholdPercent: pick(100, 100, 50, 90),
		Producers:                rng.IntN(2) == 0,
		VerifyAll:                rng.IntN(4) == 0,
		Descriptors:              NewDescriptors(pick(1, 3, 256)),
		FsyncInterval:            time.Second,
	}
	c := &campaign{fixture: newFixture(t, o), rng: rng}
	c.note("seed %d %s segments of %d, spacing %d, threshold %d", seed, o.Fsync, o.SegmentBytes, o.IndexSpacing, o.RolloverThresholdPercent)
	return c
}

func (c *campaign) note(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

func (c *campaign) fatal(format string, args ...any) {
	c.t.Helper()
	from := max(0, len(c.trace)-40)
	c.t.Fatalf("%s\n%s\n...\n%s", fmt.Sprintf(format, args...), c.trace[0], strings.Join(c.trace[from:], "\n"))
}

// payload is one that no other record has.
func (c *campaign) payload() string {
	c.made++
	return fmt.Sprintf("%d/%s", c.made, strings.Repeat("x", c.rng.IntN(150)))
}

// burst appends batches without waiting in between, and then waits.
func (c *campaign) burst() {
	g := newLedger()
	var batches [][]string
	for range 1 + c.rng.IntN(4) {
		payloads := make([]string, 1+c.rng.IntN(3))
		for i := range payloads {
			payloads[i] = c.payload()
		}
		a, err := c.log.Append(entry(payloads...), g)
		if err != nil {
			if c.log.Err() == nil {
				c.fatal("append: %v", err)
			}
			break
		}
		c.note("append %d records at %d", len(payloads), a.First)
		batches = append(batches, payloads)
	}
	for i, o := range g.wait(c.t, len(batches)) {
		c.note("  batch %d at %d: %v", i, o.app.First, o.err)
		var poisoned *SyncFailedError
		switch {
		case o.err == nil:
			if o.app.First != uint64(len(c.kept)) || len(c.maybe) > 0 {
				c.fatal("batch at %d, the log held %d", o.app.First, len(c.kept))
			}
			c.kept = append(c.kept, batches[i]...)
			if c.opts.Fsync == OnCommit {
				c.floor = uint64(len(c.kept))
			}
		case errors.As(o.err, &poisoned) && poisoned.Unknown:
			c.maybe = append(c.maybe, batches[i]...)
		}
	}
	c.floor = max(c.floor, c.log.Durable())
}

// step does one random operation.
func (c *campaign) step() {
	if c.log.Err() != nil {
		c.restart()
		return
	}
	switch n := c.rng.IntN(100); {
	case n < 55:
		c.burst()
	case n < 60:
		c.note("flush: %v", c.log.Flush())
	case n < 64:
		c.note("roll: %v", c.log.RollNow())
	case n < 70:
		c.clock.advance(time.Second)
		c.note("a second passes")
	case n < 74:
		c.trim()
	case n < 80:
		c.cut()
	case n < 86:
		c.check()
	case n < 93:
		rule := fstest.Rule{Skip: c.rng.IntN(8), Times: 1, Half: c.rng.IntN(2) == 0, After: c.rng.IntN(4) == 0}
		if c.rng.IntN(2) == 0 {
			rule.Err = fstest.ErrNoSpace
		}
		c.note("inject %v", rule)
		c.faults.Inject(rule)
	default:
		c.restart()
	}
	c.floor = max(c.floor, c.log.Durable())
}

func (c *campaign) trim() {
	before, from := uint64(c.rng.IntN(len(c.kept)+1)), c.log.Base()
	err := c.log.TrimBefore(before)
	c.note("trim before %d: %v, base %d", before, err, c.log.Base())
	c.base = max(c.base, c.log.Base())
	if err != nil {
		c.base = max(c.base, before) // a removal may have been done and reported as failed
	}
	if c.log.Base() > max(before, from) {
		c.fatal("base %d after a trim before %d", c.log.Base(), before)
	}
}

func (c *campaign) cut() {
	if len(c.kept) == 0 {
		return
	}
	at := uint64(len(c.kept) - c.rng.IntN(min(len(c.kept), 12)))
	err := c.log.Truncate(at)
	c.note("truncate to %d: %v", at, err)
	switch {
	case err == nil:
		c.kept = c.kept[:min(at, uint64(len(c.kept)))]
		c.floor = min(c.floor, uint64(len(c.kept)))
	case c.log.Err() != nil:
		c.floor = min(c.floor, at) // begun, and how far is unknown
	}
}

// check reads the whole log.
func (c *campaign) check() {
	got, err := readAll(c.log, c.log.Base(), 1+c.rng.IntN(3000))
	if err != nil {
		if errors.Is(err, fstest.ErrInjected) {
			c.note("read: %v", err)
			return
		}
		c.fatal("read: %v", err)
	}
	tail := c.log.Tail()
	if c.log.Err() == nil && tail != uint64(len(c.kept)) {
		c.fatal("tail %d, want %d", tail, len(c.kept))
	}
	c.compare(got)
}

func (c *campaign) compare(got []record) {
	for i, r := range got {
		want := ""
		if r.offset < uint64(len(c.kept)) {
			want = c.kept[r.offset]
		} else if rest := r.offset - uint64(len(c.kept)); rest < uint64(len(c.maybe)) {
			want = c.maybe[rest]
		}
		if r.payload != want {
			c.fatal("offset %d holds %.12q, want %.12q", r.offset, r.payload, want)
		}
		if i > 0 && r.micros < got[i-1].micros {
			c.fatal("record time of offset %d decreases", r.offset)
		}
	}
}

// restart closes the log, or kills the process, or takes the power, perhaps in
// the middle of something, and opens what is left.
func (c *campaign) restart() {
	how := c.rng.IntN(4)
	if how > 0 && c.rng.IntN(2) == 0 {
		c.faults.FailNth(1+c.rng.IntN(12), true, fstest.ErrIO)
		c.note("everything fails from here on")
		c.burst()
		if c.rng.IntN(3) == 0 && c.log.Err() == nil {
			c.cut()
		}
	}
	c.floor = max(c.floor, c.log.Durable())
	floor := c.floor
	var disk *fstest.Mem
	switch how {
	case 0:
		err := c.log.Close()
		c.note("close: %v", err)
		if err == nil {
			floor = uint64(len(c.kept))
		}
		disk = c.mem.Kill()
	case 1:
		c.note("kill")
		disk = c.mem.Kill()
	default:
		seed := c.rng.Uint64()
		c.note("power loss %d", seed)
		disk = c.mem.Crash(seed)
	}
	_ = c.log.Close()
	c.reopenOn(disk, floor)
}

// reopenOn opens the log, with calls failing during some recoveries.
func (c *campaign) reopenOn(disk *fstest.Mem, floor uint64) {
	c.mem, c.faults = disk, fstest.NewFaults(disk)
	for c.rng.IntN(3) == 0 {
		n := 1 + c.rng.IntN(25)
		rule := c.faults.FailNth(n, c.rng.IntN(2) == 0, fstest.ErrIO)
		err := c.tryOpen()
		c.note("open with call %d failing: %v", n, err)
		if err == nil {
			_ = c.log.Close()
		} else if !errors.Is(err, fstest.ErrInjected) {
			c.fatal("open: %v", err)
		}
		rule.Stop()
		if c.rng.IntN(2) == 0 {
			c.mem = c.mem.Crash(c.rng.Uint64())
			c.faults = fstest.NewFaults(c.mem)
			c.note("power loss during recovery")
		}
	}
	if err := c.tryOpen(); err != nil {
		c.fatal("open: %v", err)
	}
	tail := c.log.Tail()
	c.note("open: [%d, %d)", c.log.Base(), tail)
	if tail < floor || tail > uint64(len(c.kept)+len(c.maybe)) {
		c.fatal("tail %d: %d must have survived, %d and %d were there", tail, floor, len(c.kept), len(c.maybe))
	}
	if c.log.Base() > c.base {
		c.fatal("base %d, trimmed to %d", c.log.Base(), c.base)
	}
	got, err := readAll(c.log, c.log.Base(), 1<<20)
	if err != nil {
		c.fatal("read: %v", err)
	}
	c.compare(got)
	c.kept = append(c.kept, c.maybe...)[:tail]
	c.maybe = nil
	c.floor = tail // opening made it durable
}

// TestPowerLossCampaign: whatever happens, what was promised is there and what
// failed is not (reliability 4). SOAK multiplies the seeds.
func TestPowerLossCampaign(t *testing.T) {
	for seed := range times(t, 120) {
		c := newCampaign(t, seed)
		for range 150 {
			c.step()
		}
		c.faults.Clear()
		_ = c.log.Close()
		if t.Failed() {
			return
		}
	}
}
