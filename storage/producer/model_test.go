package producer

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// entry is a batch of the log.
type entry struct {
	id, seq, digest, first uint64
	count                  uint32
}

func (e entry) end() uint64 { return e.first + uint64(e.count) }

// model answers from the log itself: it replays all of it for each question.
type model struct {
	log       []entry
	producers int
	window    int
}

// histories are the batches of each producer that is remembered.
func (m *model) histories() map[uint64][]entry {
	all := map[uint64][]entry{}
	for _, e := range m.log {
		h := all[e.id]
		if len(h) == 0 && len(all) == m.producers {
			coldest := slices.MinFunc(m.values(all), func(a, b entry) int { return cmp.Compare(a.first, b.first) })
			delete(all, coldest.id)
		}
		if len(h) > 0 && h[len(h)-1].seq+1 != e.seq {
			h = nil
		}
		h = append(slices.Clone(h), e)
		all[e.id] = h[max(0, len(h)-m.window):]
	}
	return all
}

// values are the newest batches.
func (m *model) values(all map[uint64][]entry) []entry {
	var newest []entry
	for _, h := range all {
		newest = append(newest, h[len(h)-1])
	}
	return newest
}

func (m *model) check(id, seq, digest uint64) Verdict {
	h := m.histories()[id]
	if len(h) == 0 {
		if seq == 0 {
			return Verdict{Outcome: Next}
		}
		return Verdict{Outcome: Unknown}
	}
	next := h[len(h)-1].seq + 1
	switch {
	case seq == next:
		return Verdict{Outcome: Next, Expected: next}
	case seq > next:
		return Verdict{Outcome: Gap, Expected: next}
	}
	for _, e := range h {
		if e.seq == seq && e.digest == digest {
			return Verdict{Outcome: Duplicate, First: e.first, Count: e.count, Expected: next}
		}
		if e.seq == seq {
			return Verdict{Outcome: Reused, First: e.first, Count: e.count, Expected: next}
		}
	}
	return Verdict{Outcome: Expired, Expected: next}
}

func (m *model) tail() uint64 {
	if len(m.log) == 0 {
		return 0
	}
	return m.log[len(m.log)-1].end()
}

// next is what the producer would send, according to the log.
func (m *model) next(id uint64) uint64 {
	if h := m.histories()[id]; len(h) > 0 {
		return h[len(h)-1].seq + 1
	}
	return 0
}

type machine struct {
	model
	table *Table
	ids   uint64
}

func (m *machine) append(id, seq, digest uint64, gap uint64, count uint32) {
	first := m.tail() + gap
	m.table.Record(id, seq, digest, first, count)
	m.log = append(m.log, entry{id, seq, digest, first, count})
}

// same compares every answer.
func (m *machine) same(t *rapid.T, table *Table) {
	t.Helper()
	if got, want := table.Len(), len(m.histories()); got != want {
		t.Fatalf("%d producers, want %d", got, want)
	}
	for id := range m.ids {
		for seq := range m.next(id) + 3 {
			for digest := range uint64(2) {
				if got, want := table.Check(id, seq, digest), m.check(id, seq, digest); got != want {
					t.Fatalf("producer %d sequence %d digest %d: got %+v, want %+v", id, seq, digest, got, want)
				}
			}
		}
	}
}

func (m *machine) send(t *rapid.T) {
	id := rapid.Uint64Max(m.ids-1).Draw(t, "id")
	m.append(id, m.next(id), rapid.Uint64Max(1).Draw(t, "digest"), rapid.Uint64Max(3).Draw(t, "gap"), rapid.Uint32Range(1, 5).Draw(t, "count"))
}

// The table answers as the log does, whatever comes, fails, is trimmed, or is
// saved and restored.
func TestTableAnswersAsTheLog(t *testing.T) {
	const window = 4
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{ids: 5, model: model{producers: 5, window: window}}
		m.table = NewTable(m.producers, window)
		t.Repeat(map[string]func(*rapid.T){
			"send": m.send,
			"come back with a higher number": func(t *rapid.T) { // as a log shows it whose head was trimmed
				id := rapid.Uint64Max(m.ids-1).Draw(t, "id")
				if m.next(id) < 20 {
					m.append(id, m.next(id)+rapid.Uint64Range(1, 4).Draw(t, "skipped"), 0, 0, 1)
				}
			},
			"fail": func(t *rapid.T) {
				// Batches that came since and are taken back, at most a window
				// for each producer.
				kept := len(m.log)
				before := slices.Clone(m.log)
				for range rapid.IntRange(1, window).Draw(t, "batches") {
					m.send(t)
				}
				tail := m.log[kept].first
				m.log = before
				m.table.Rewind(tail)
			},
			"trim": func(t *rapid.T) {
				if len(m.log) == 0 {
					return
				}
				n := rapid.IntRange(0, len(m.log)).Draw(t, "trimmed")
				base := m.tail()
				if n < len(m.log) {
					base = m.log[n].first
				}
				m.table.Trim(base)
				m.log = append([]entry{}, m.log[n:]...)
			},
			"": func(t *rapid.T) { m.same(t, m.table) },
			"restore": func(t *rapid.T) {
				snapshot := m.table.AppendSnapshot(nil, m.tail())
				restored, asOf, err := Restore(snapshot, m.producers, window)
				if err != nil || asOf != m.tail() {
					t.Fatalf("as of %d: %v", asOf, err)
				}
				m.same(t, restored)
				if again := restored.AppendSnapshot(nil, asOf); !bytes.Equal(again, snapshot) {
					t.Fatalf("a snapshot of the restored differs")
				}
			},
		})
	})
}

// The producer to be forgotten is the one the log says, also after a failure
// that made no room.
func TestColdestProducerIsForgotten(t *testing.T) {
	const window = 4
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{ids: 7, model: model{producers: 3, window: window}}
		m.table = NewTable(m.producers, window)
		t.Repeat(map[string]func(*rapid.T){
			"send": m.send,
			"fail": func(t *rapid.T) {
				if len(m.log) == 0 {
					return
				}
				known := slices.Sorted(maps.Keys(m.histories()))
				before, tail := slices.Clone(m.log), m.tail()
				for range rapid.IntRange(1, window).Draw(t, "batches") {
					id := rapid.SampledFrom(known).Draw(t, "id")
					m.append(id, m.next(id), 0, 0, 1)
				}
				m.log = before
				m.table.Rewind(tail)
			},
			"": func(t *rapid.T) { m.same(t, m.table) },
		})
	})
}

// A snapshot as of an offset in the past, with batches under way beyond it, is
// that of a table that never saw them.
func TestSnapshotLeavesOutWhatIsUnderWay(t *testing.T) {
	const window = 4
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{ids: 4, model: model{producers: 4, window: window}}
		m.table = NewTable(m.producers, window)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			m.send(t)
		}
		asOf, past := m.tail(), slices.Clone(m.log)
		want := m.table.AppendSnapshot(nil, asOf)
		for range rapid.IntRange(0, window).Draw(t, "under way") {
			m.send(t)
		}
		if got := m.table.AppendSnapshot(nil, asOf); !bytes.Equal(got, want) {
			t.Fatalf("\n got %x\nwant %x", got, want)
		}
		restored, _, err := Restore(want, m.producers, window)
		if err != nil {
			t.Fatal(err)
		}
		later := m.log[len(past):]
		for _, e := range later {
			restored.Record(e.id, e.seq, e.digest, e.first, e.count)
		}
		m.same(t, restored)
	})
}
