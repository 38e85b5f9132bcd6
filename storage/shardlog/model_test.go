package shardlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/storage/segment"
)

// model is what a log is: batches in order, from a base on.
type model struct {
	*fixture
	base    uint64 // at most that of the log: segments are trimmed whole
	batches []modelBatch
}

type modelBatch struct {
	first    uint64
	payloads []string
	micros   uint64
	where    Location
}

func (b modelBatch) end() uint64 { return b.first + uint64(len(b.payloads)) }

func (m *model) tail() uint64 {
	if n := len(m.batches); n > 0 {
		return m.batches[n-1].end()
	}
	return m.base
}

// TestModel drives a log and the model of it with the same calls.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t, Options{
			Fsync:                    FsyncMode(rapid.IntRange(0, 2).Draw(rt, "fsync")),
			SegmentBytes:             rapid.SampledFrom([]int64{200, 500, 3000, 1 << 20}).Draw(rt, "segment bytes"),
			IndexSpacing:             rapid.SampledFrom([]int{1, 300, 4096}).Draw(rt, "index spacing"),
			RolloverThresholdPercent: rapid.SampledFrom([]int{50, 100}).Draw(rt, "threshold"),
			Descriptors:              NewDescriptors(rapid.IntRange(1, 4).Draw(rt, "descriptors")),
		})
		m := &model{fixture: f}
		rt.Repeat(map[string]func(*rapid.T){
			"append":   m.drawAppend,
			"read":     m.drawRead,
			"read at":  m.drawReadAt,
			"time":     m.drawTime,
			"truncate": m.drawTruncate,
			"trim":     m.drawTrim,
			"reset":    m.drawReset,
			"roll":     func(rt *rapid.T) { m.must(rt, f.log.RollNow()) },
			"flush":    func(rt *rapid.T) { m.must(rt, f.log.Flush()) },
			"tick":     func(rt *rapid.T) { f.clock.advance(time.Second) },
			"reopen":   func(rt *rapid.T) { m.must(rt, f.log.Close()); m.must(rt, f.tryOpen()) },
			"":         m.invariants,
		})
		_ = f.log.Close()
	})
}

func (m *model) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

func (m *model) drawAppend(rt *rapid.T) {
	payloads := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,60}`), 1, 5).Draw(rt, "payloads")
	expected := m.log.Claimed()
	g := newLedger()
	if _, err := m.log.AppendAt(expected, entry(payloads...), g); err != nil {
		rt.Fatal(err)
	}
	o := g.wait(m.t, 1)[0]
	if o.err != nil || o.app.First != m.tail() {
		rt.Fatalf("%+v, the model ends at %d", o, m.tail())
	}
	m.batches = append(m.batches, modelBatch{o.app.First, payloads, o.app.TimestampMicros, o.app.Where})
}

func (m *model) drawRead(rt *rapid.T) {
	from := rapid.Uint64Range(0, m.tail()+3).Draw(rt, "from")
	maxBytes := rapid.SampledFrom([]int{0, 200, 1000, 1 << 20}).Draw(rt, "bytes")
	maxRecords := rapid.IntRange(0, 20).Draw(rt, "records")
	page, err := m.log.Read(from, maxBytes, maxRecords)
	if from < m.log.Base() {
		var trimmed *TrimmedError
		if !errors.As(err, &trimmed) || trimmed.Oldest != m.log.Base() {
			rt.Fatal(err)
		}
		return
	}
	m.must(rt, err)
	defer page.Release()
	i := slices.IndexFunc(m.batches, func(b modelBatch) bool { return b.end() > from })
	if i < 0 {
		if len(page.Batches) != 0 || page.Next != from {
			rt.Fatalf("%d batches at the tail, next %d", len(page.Batches), page.Next)
		}
		return
	}
	want := m.batches[i:]
	if len(page.Batches) == 0 || len(page.Batches) > len(want) {
		rt.Fatalf("%d batches", len(page.Batches))
	}
	bytes, records := 0, 0
	for j := range page.Batches {
		m.compare(rt, &page.Batches[j], want[j])
		bytes += page.Where[j].Length
		records += len(want[j].payloads)
		if page.Where[j] != want[j].where {
			rt.Fatalf("batch at %+v, want %+v", page.Where[j], want[j].where)
		}
	}
	if page.Next != want[len(page.Batches)-1].end() {
		rt.Fatalf("next %d", page.Next)
	}
	if maxRecords == 0 {
		maxRecords = DefaultMaxReadRecords
	}
	if len(page.Batches) > 1 && (bytes > maxBytes || records > maxRecords) {
		rt.Fatalf("%d bytes of %d, %d records of %d", bytes, maxBytes, records, maxRecords)
	}
	if next := want[len(page.Batches):]; len(next) > 0 && bytes+next[0].where.Length <= maxBytes && records+len(next[0].payloads) <= maxRecords {
		rt.Fatalf("the page has room for one more")
	}
}

func (m *model) compare(rt *rapid.T, b *segment.Batch, want modelBatch) {
	var payloads []string
	for _, p := range b.All() {
		payloads = append(payloads, string(p))
	}
	if b.BaseOffset != want.first || b.TimestampMicros != want.micros || !slices.Equal(payloads, want.payloads) {
		rt.Fatalf("batch at %d holds %q, want %q at %d", b.BaseOffset, payloads, want.payloads, want.first)
	}
}

func (m *model) drawReadAt(rt *rapid.T) {
	if len(m.batches) == 0 {
		return
	}
	want := rapid.SampledFrom(m.batches).Draw(rt, "batch")
	page, err := m.log.ReadAt(want.where)
	var trimmed *TrimmedError
	if errors.As(err, &trimmed) && want.end() <= m.log.Base() {
		return
	}
	m.must(rt, err)
	m.compare(rt, &page.Batches[0], want)
	page.Release()
}

func (m *model) drawTime(rt *rapid.T) {
	m.clock.step(time.Duration(rapid.IntRange(-2, 5).Draw(rt, "step")) * time.Second)
	base := m.log.Base()
	at := uint64(m.clock.Now().Add(-10*time.Second).UnixMicro()) + rapid.Uint64Range(0, 20e6).Draw(rt, "at")
	i := slices.IndexFunc(m.batches, func(b modelBatch) bool { return b.end() > base && b.micros >= at })
	got, ok, err := m.log.OffsetForTime(at)
	if err != nil || ok != (i >= 0) || ok && got != m.batches[i].first {
		rt.Fatalf("offset %d %v %v for time %d, batch %d", got, ok, err, at, i)
	}
}

func (m *model) drawTruncate(rt *rapid.T) {
	at := rapid.Uint64Range(m.log.Base(), m.tail()).Draw(rt, "at")
	err := m.log.Truncate(at)
	i := slices.IndexFunc(m.batches, func(b modelBatch) bool { return b.end() > at })
	if i >= 0 && m.batches[i].first < at {
		var split *SplitBatchError
		if !errors.As(err, &split) || split.First != m.batches[i].first || split.End != m.batches[i].end() {
			rt.Fatal(err)
		}
		return
	}
	m.must(rt, err)
	if i >= 0 {
		m.batches = m.batches[:i]
	}
	if len(m.batches) == 0 {
		m.base = at
	}
}

func (m *model) drawTrim(rt *rapid.T) {
	before := rapid.Uint64Range(0, m.tail()).Draw(rt, "before")
	old := m.log.Base()
	m.must(rt, m.log.TrimBefore(before))
	if b := m.log.Base(); b < old || b > max(before, old) {
		rt.Fatalf("base %d, was %d, trimmed before %d", b, old, before)
	}
}

func (m *model) drawReset(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
		return
	}
	m.base = rapid.Uint64Range(0, 1000).Draw(rt, "base")
	m.must(rt, m.log.ResetTo(m.base))
	m.batches = nil
}

func (m *model) invariants(rt *rapid.T) {
	l := m.log
	if l.Err() != nil || l.Tail() != m.tail() || l.Claimed() != m.tail() || l.Durable() > l.Tail() {
		rt.Fatalf("%v: tail %d claimed %d durable %d, want %d", l.Err(), l.Tail(), l.Claimed(), l.Durable(), m.tail())
	}
	if l.opts.Fsync == OnCommit && l.Durable() != l.Tail() {
		rt.Fatalf("durable %d tail %d", l.Durable(), l.Tail())
	}
	infos := l.Segments()
	if infos[0].Base != l.Base() || infos[len(infos)-1].End != l.Tail() || l.Base() < m.base {
		rt.Fatalf("[%d, %d) and %+v", l.Base(), l.Tail(), infos)
	}
	for i := range infos[1:] {
		if infos[i].End != infos[i+1].Base {
			rt.Fatalf("a gap in %+v", infos)
		}
	}
}

// history is all that a user can tell of a log.
type history struct {
	Records  []record
	Appended []uint64
	Tails    []uint64
}

// TestSameHistoryUnderAllSettings: the same records in the same order under
// other segment sizes, fsync modes, batch sizes and rolls are the same log
// (reliability 13).
func TestSameHistoryUnderAllSettings(t *testing.T) {
	for seed := range times(t, 12) {
		var want history
		for i, s := range []struct {
			opts  Options
			batch int
		}{
			{Options{Fsync: OnCommit}, 1},
			{Options{Fsync: None}, 7},
			{Options{Fsync: Periodic}, 3},
			{Options{Fsync: OnCommit, SegmentBytes: 300}, 2},
			{Options{Fsync: None, SegmentBytes: 900, IndexSpacing: 1}, 1},
			{Options{Fsync: Periodic, SegmentBytes: 2000, RolloverThresholdPercent: 50}, 5},
			{Options{Fsync: OnCommit, SegmentBytes: 5000, Producers: true, VerifyAll: true, Descriptors: NewDescriptors(1)}, 4},
		} {
			got := playHistory(t, seed, s.opts, s.batch)
			if i == 0 {
				want = got
			} else if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: settings %d give another history: %d and %d records, tails %v and %v",
					seed, i, len(got.Records), len(want.Records), got.Tails, want.Tails)
			}
		}
	}
}

// playHistory appends groups of records in batches of at most that many, and
// cuts between groups.
func playHistory(t *testing.T, seed uint64, o Options, batch int) history {
	f := newFixture(t, o)
	rng := rand.New(rand.NewPCG(seed, 13))
	bounds := []uint64{0}
	var h history
	for range 40 {
		switch n := rng.IntN(20); {
		case n < 14:
			payloads := make([]string, 1+rng.IntN(9))
			for i := range payloads {
				payloads[i] = fmt.Sprint(rng.Uint32()) + strings.Repeat("x", rng.IntN(120))
			}
			for part := range slices.Chunk(payloads, batch) {
				h.Appended = append(h.Appended, f.append(entry(part...)).First+uint64(len(part)))
			}
			h.Appended = h.Appended[:len(h.Appended)-(len(payloads)-1)/batch] // one per group
			h.Appended[len(h.Appended)-1] = f.log.Tail()
			bounds = append(bounds, f.log.Tail())
		case n < 16:
			i := rng.IntN(len(bounds))
			bounds = bounds[:i+1]
			if err := f.log.Truncate(bounds[i]); err != nil {
				t.Fatal(err)
			}
		case n < 18:
			f.clock.advance(time.Second)
		default:
			f.reopen()
		}
		h.Tails = append(h.Tails, f.log.Tail())
	}
	h.Records = f.records()
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}
