package producer

import (
	"cmp"
	"slices"
)

// Bounds of a table (wire 9.6).
const (
	DefaultProducers = 4096
	DefaultWindow    = 64
)

// Outcome is what is to be done with a batch.
type Outcome uint8

// The outcomes.
const (
	Next      Outcome = iota // append it
	Duplicate                // it is there already
	Reused                   // its number was used for other payloads
	Gap                      // numbers before it are missing
	Expired                  // its number is older than what is remembered
	Unknown                  // the producer is not known, and would have to start at 0
)

func (o Outcome) String() string {
	switch o {
	case Next:
		return "next"
	case Duplicate:
		return "duplicate"
	case Reused:
		return "reused"
	case Gap:
		return "gap"
	case Expired:
		return "expired"
	case Unknown:
		return "unknown"
	}
	return "invalid"
}

// Verdict is the answer to a batch.
type Verdict struct {
	Outcome  Outcome
	First    uint64 // offset of the batch's first record, for Duplicate and Reused
	Count    uint32 // and its records
	Expected uint64 // the producer's next sequence; 0 for Unknown
}

// Table is the memory of one shard. It is not safe for concurrent use: the log
// holds its lock around it.
type Table struct {
	maxProducers int
	window       int
	producers    map[uint64]*producer
	oldest       *producer // by newest batch; the one to forget
	newest       *producer
}

// NewTable makes an empty table of at most maxProducers producers that answers
// for the window latest batches of each; 0 means the default.
func NewTable(maxProducers, window int) *Table {
	return &Table{
		maxProducers: cmp.Or(max(maxProducers, 0), DefaultProducers),
		window:       cmp.Or(max(window, 0), DefaultWindow),
		producers:    map[uint64]*producer{},
	}
}

// Len is the number of producers known.
func (t *Table) Len() int { return len(t.producers) }

// Check judges a batch that wants to be appended; digest is that of its block.
func (t *Table) Check(id, seq, digest uint64) Verdict {
	p := t.producers[id]
	if p == nil {
		if seq == 0 {
			return Verdict{Outcome: Next}
		}
		return Verdict{Outcome: Unknown}
	}
	v := Verdict{Expected: p.last + 1}
	switch {
	case seq == v.Expected:
		v.Outcome = Next
	case seq > v.Expected:
		v.Outcome = Gap
	case p.last-seq >= uint64(min(p.len(), t.window)):
		v.Outcome = Expired
	default:
		b := p.at(p.len() - 1 - int(p.last-seq))
		v.First, v.Count, v.Outcome = b.first, b.count, Duplicate
		if b.digest != digest {
			v.Outcome = Reused
		}
	}
	return v
}

// Record enters a batch of the log: one that Check let through and that now has
// its offset, or one found at recovery. Offsets ascend from call to call. A
// sequence that does not follow the producer's last begins its history anew:
// what lay between is not in the log any more.
func (t *Table) Record(id, seq, digest, first uint64, count uint32) {
	p := t.producers[id]
	switch {
	case p == nil:
		if len(t.producers) >= t.maxProducers {
			t.forget(t.oldest)
		}
		p = &producer{id: id}
		t.producers[id] = p
	case seq != p.last+1:
		p.clear()
		fallthrough
	default:
		t.unlink(p)
	}
	p.last = seq
	p.push(batch{first: first, digest: digest, count: count}, 2*t.window)
	t.linkNewest(p)
}

// Rewind forgets the batches that reach past tail: their write failed, or the
// log was cut there. Check then answers as if they had never come, as long as
// no producer loses more than a window of batches at once; one that does is
// forgotten. Producers that were forgotten to make room do not come back.
func (t *Table) Rewind(tail uint64) {
	var touched []*producer
	for p := t.newest; p != nil && p.latest().end() > tail; p = t.newest {
		t.unlink(p)
		p.dropFrom(tail)
		touched = append(touched, p)
	}
	touched = slices.DeleteFunc(touched, func(p *producer) bool {
		if p.len() == 0 {
			delete(t.producers, p.id)
		}
		return p.len() == 0
	})
	slices.SortFunc(touched, func(a, b *producer) int { return cmp.Compare(a.latest().first, b.latest().first) })
	t.merge(touched)
}

// Trim forgets the batches below base, which retention removed from the log.
func (t *Table) Trim(base uint64) {
	for p := t.oldest; p != nil; {
		next := p.newer
		p.dropBelow(base)
		if p.len() == 0 {
			t.forget(p)
		}
		p = next
	}
}

func (t *Table) forget(p *producer) {
	t.unlink(p)
	delete(t.producers, p.id)
}
