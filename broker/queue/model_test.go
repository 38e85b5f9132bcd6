package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
)

// A model is one group as its rules say (broker 10, wire 12.2), without a disk:
// what the store does is compared with it, call by call.
type model struct {
	maxAttempts uint32
	now         int64

	tail, committed, highWater, handed uint64
	play                               map[uint64]*modelRecord
	ahead                              map[uint64]bool // finished at or above committed
	dead                               map[uint64]bool
	redriven                           map[uint64]bool // letters that say so
	waits                              map[uint64]bool // redriven before their turn
	// counts on disk, of records not finished.
	counts map[uint64]span
	most   map[uint64]uint32 // the highest count ever written
	past   map[uint64]span   // attempts of the life before, of records not met since
	graves map[uint64]bool   // dead letters ahead of a gap

	exists, rebuilt    bool
	firstTail, seekEnd uint64
}

// A span is how often a record was handed out: after a crash that is not always
// known.
type span struct{ low, high uint32 }

type modelRecord struct {
	attempts span
	state    tracker.State
	until    int64
	redriven bool
}

func newModel(maxAttempts uint32) *model {
	m := &model{maxAttempts: maxAttempts, dead: map[uint64]bool{}, redriven: map[uint64]bool{}}
	m.clear()
	return m
}

func (m *model) clear() {
	m.play, m.ahead, m.waits = map[uint64]*modelRecord{}, map[uint64]bool{}, map[uint64]bool{}
	m.counts, m.past, m.graves = map[uint64]span{}, map[uint64]span{}, map[uint64]bool{}
	m.most = map[uint64]uint32{}
}

func (m *model) finished(offset uint64) bool {
	return m.play[offset] == nil && (offset < m.highWater || m.ahead[offset])
}

func (m *model) advance() {
	for m.ahead[m.committed] {
		delete(m.ahead, m.committed)
		m.committed++
	}
	for offset := range m.graves {
		if offset < m.committed {
			delete(m.graves, offset)
		}
	}
	m.highWater = max(m.highWater, m.committed)
	for m.ahead[m.highWater] || m.play[m.highWater] != nil {
		m.highWater++
	}
	m.handed = max(m.handed, m.highWater)
}

// finish takes a record out of play for good.
func (m *model) finish(offset uint64) {
	delete(m.play, offset)
	delete(m.past, offset)
	delete(m.counts, offset)
	if offset >= m.committed {
		m.ahead[offset] = true
	}
	m.advance()
}

func (m *model) bury(offset uint64) {
	delete(m.redriven, offset)
	delete(m.waits, offset)
	m.dead[offset] = true
	m.finish(offset)
	if offset >= m.committed {
		m.graves[offset] = true
	}
}

// meet is a record whose turn has come.
func (m *model) meet(offset uint64) *modelRecord {
	r := &modelRecord{}
	if m.waits[offset] {
		delete(m.waits, offset)
		r.redriven = true
		return r
	}
	r.attempts = m.past[offset]
	delete(m.past, offset)
	return r
}

// lapse ends what is due.
func (m *model) lapse() {
	for offset, r := range maps.Clone(m.play) {
		if (r.state == tracker.Claimed || r.state == tracker.Delayed) && r.until <= m.now {
			if r.attempts.high >= m.maxAttempts {
				m.bury(offset)
			} else {
				r.state = tracker.Owed
			}
		}
	}
}

// poll hands out up to most records; what is due has lapsed.
func (m *model) poll(most int, visibility time.Duration) (offsets []uint64) {
	var buried []uint64
	give := func(offset uint64, r *modelRecord) {
		if r.attempts.low >= m.maxAttempts {
			buried = append(buried, offset)
			return
		}
		r.attempts.low++
		r.attempts.high++
		r.state, r.until = tracker.Claimed, m.now+int64(visibility)
		if r.attempts.high >= 2 || r.redriven {
			m.counts[offset], m.most[offset] = r.attempts, r.attempts.high
		}
		offsets = append(offsets, offset)
	}
	for _, offset := range slices.Sorted(maps.Keys(m.play)) {
		if r := m.play[offset]; r.state == tracker.Owed && len(offsets) < most {
			give(offset, r)
		}
	}
	for len(offsets) < most && m.highWater < m.tail {
		offset := m.highWater
		r := m.meet(offset)
		m.play[offset] = r
		give(offset, r)
		m.advance()
	}
	for _, offset := range buried {
		m.bury(offset)
	}
	m.exists = m.exists || len(offsets) > 0
	slices.Sort(offsets)
	return offsets
}

// unseen is what a settle is told of a record that is neither finished nor in
// play.
func (m *model) unseen(offset uint64) string {
	switch {
	case offset < m.firstTail:
		return "ok"
	case offset < m.seekEnd:
		return "stale"
	case m.rebuilt:
		return "retry"
	}
	return "invalid"
}

func (m *model) ack(offset uint64) string {
	r := m.play[offset]
	switch {
	case offset >= m.tail:
		return "invalid"
	case r == nil && m.finished(offset):
		return "ok"
	case r == nil:
		if answer := m.unseen(offset); answer != "ok" {
			return answer
		}
		r = m.meet(offset)
	}
	if r.redriven {
		delete(m.redriven, offset)
	}
	m.finish(offset)
	return "ok"
}

func (m *model) nack(offset uint64, attempts uint32, delay time.Duration) string {
	r := m.play[offset]
	switch {
	case offset >= m.tail:
		return "invalid"
	case attempts != 0 && (r == nil || r.state != tracker.Claimed || r.attempts.low != attempts):
		return "stale"
	case r == nil && m.finished(offset):
		return "ok"
	case r == nil:
		return m.unseen(offset)
	case r.attempts.low >= m.maxAttempts:
		m.bury(offset)
	case delay > 0:
		r.state, r.until = tracker.Delayed, m.now+int64(delay)
	default:
		r.state = tracker.Owed
	}
	return "ok"
}

func (m *model) extend(offset uint64, attempts uint32, extend time.Duration) string {
	r := m.play[offset]
	if r == nil || r.state != tracker.Claimed || r.attempts.low != attempts {
		return "stale"
	}
	r.until = m.now + int64(extend)
	return "ok"
}

func (m *model) deadLetter(offset uint64) string {
	switch {
	case offset >= m.tail, m.finished(offset):
		return "invalid"
	case m.play[offset] == nil:
		if answer := m.unseen(offset); answer != "ok" {
			return answer
		}
	}
	m.exists = true
	m.bury(offset)
	return "ok"
}

func (m *model) discard(offset uint64) string {
	if !m.dead[offset] {
		return "not listed"
	}
	delete(m.dead, offset)
	return "ok"
}

func (m *model) redrive(offset uint64) string {
	switch {
	case m.redriven[offset]:
		return "ok"
	case !m.dead[offset]:
		return "not listed"
	}
	delete(m.dead, offset)
	m.redriven[offset] = true
	delete(m.graves, offset)
	delete(m.counts, offset)
	delete(m.most, offset)
	switch r := m.play[offset]; {
	case r != nil:
		r.redriven = true
	case m.finished(offset):
		m.play[offset] = &modelRecord{state: tracker.Owed, redriven: true}
		m.advance()
	default:
		m.waits[offset] = true
		delete(m.past, offset)
	}
	return "ok"
}

func (m *model) seek(to uint64) string {
	if to > m.tail {
		return "invalid"
	}
	m.seekEnd = max(m.seekEnd, m.highWater, m.firstTail)
	m.firstTail, m.handed, m.exists = 0, to, true
	m.committed, m.highWater = to, to
	for offset, r := range m.play {
		if r.redriven {
			r.state = tracker.Owed
			continue
		}
		delete(m.play, offset)
	}
	for offset := range m.counts {
		if !m.redriven[offset] {
			delete(m.counts, offset)
			delete(m.most, offset)
		}
	}
	for offset := range m.waits {
		if offset < to {
			delete(m.waits, offset)
			m.play[offset] = &modelRecord{state: tracker.Owed, redriven: true}
		}
	}
	m.ahead, m.past, m.graves = map[uint64]bool{}, map[uint64]span{}, map[uint64]bool{}
	m.advance()
	return "ok"
}

func (m *model) remove() bool {
	existed := m.exists || len(m.dead)+len(m.redriven) > 0
	m.clear()
	m.dead, m.redriven = map[uint64]bool{}, map[uint64]bool{}
	m.committed, m.highWater, m.handed, m.firstTail = 0, 0, 0, 0
	m.exists, m.rebuilt, m.seekEnd = false, true, m.tail
	return existed
}

// unclaim takes back a hand-out.
func (m *model) unclaim(offset uint64, attempts uint32) {
	r := m.play[offset]
	if r == nil || attempts == 0 || r.attempts.low != attempts {
		return
	}
	if r.state == tracker.Claimed {
		r.state = tracker.Owed
	}
	if r.attempts.low--; r.attempts.low >= 2 || r.redriven && r.attempts.low == 1 {
		m.counts[offset] = r.attempts
	} else {
		delete(m.counts, offset)
	}
	r.attempts.high = r.attempts.low
}

// restart builds the group anew from what is on disk: everything decided, or with
// a crash what was waited for, and of the rest nobody knows.
func (m *model) restart(crash bool) {
	m.rebuilt = m.exists
	m.firstTail, m.seekEnd = 0, 0
	if m.exists {
		m.firstTail = m.tail
	}
	handed, graves := m.handed, m.graves
	counts := m.counts
	m.play, m.ahead, m.waits = map[uint64]*modelRecord{}, map[uint64]bool{}, map[uint64]bool{}
	m.past, m.counts = map[uint64]span{}, map[uint64]span{}
	m.highWater = m.committed
	for offset := m.committed; offset < handed; offset++ {
		m.past[offset] = span{1, 1}
		if crash {
			m.past[offset] = span{0, max(1, m.most[offset])}
		}
	}
	for offset, n := range counts {
		if offset >= m.committed && !m.redriven[offset] {
			if crash {
				n.high = max(n.high, m.most[offset])
			}
			m.past[offset], m.counts[offset] = n, n
		}
	}
	for offset := range m.redriven {
		delete(m.past, offset)
		r := &modelRecord{state: tracker.Owed, redriven: true}
		if n, ok := counts[offset]; ok {
			r.attempts, m.counts[offset] = n, n
		}
		if crash {
			r.attempts.high = max(r.attempts.high, m.most[offset])
		}
		m.play[offset] = r
	}
	for offset := range graves {
		delete(m.past, offset)
		delete(m.counts, offset)
		m.ahead[offset] = true
	}
	m.advance()
}

// shown is what a description says.
func (m *model) shown() string {
	in, owed := 0, 0
	for _, r := range m.play {
		if r.state == tracker.Owed {
			owed++
		} else {
			in++
		}
	}
	return fmt.Sprintf("committed %d, tail %d, %d in flight, %d owed, dead %v", m.committed, m.tail, in, owed, slices.Sorted(maps.Keys(m.dead)))
}
