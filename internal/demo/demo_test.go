package demo

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/examples"
)

// played is a demo of so many records as it is at the end of a run in which
// nothing was wrong but what was meant to be.
func played(t *testing.T, records [][]byte) *Demo {
	t.Helper()
	n := len(records)
	d := New(records, 0, nil)
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	d.published, d.received, d.cached = n, n, n
	d.kill = Kill{After: n / 2, At: time.Unix(1, 0), Back: time.Unix(2, 0)}
	timing, now, poison := newTiming(n), time.Unix(3, 0), d.queue.Poison.Offset
	q := &d.queue
	q.note(doomed, deed{Did: didReady}, now, timing)
	q.note(doomed, deed{Did: didHold, Offset: poison, Attempts: 1}, now, timing)
	q.killed(map[uint64]uint32{poison: 1}, now, now)
	q.maxAttempts = 3
	for attempts := uint32(2); attempts <= 3; attempts++ {
		q.note(survivor, deed{Did: didBegin, Offset: poison, Attempts: attempts}, now.Add(time.Second), timing)
		q.note(survivor, deed{Did: didFail, Offset: poison, Attempts: attempts}, now, timing)
	}
	q.letters, q.Poison.GivenUp, q.Poison.Redriven = 1, true, true
	for i := range n {
		offset := uint64(i)
		if _, strong := q.strong[offset]; !strong {
			q.note(survivor, deed{Did: didPass, Offset: offset, Attempts: 1}, now, timing)
			continue
		}
		q.note(survivor, deed{Did: didBegin, Offset: offset, Attempts: 1}, now, timing)
		q.note(survivor, deed{Did: didWork, Offset: offset, Attempts: 1}, now, timing)
	}
	q.end = client.GroupInfo{HasCommitted: true, Committed: uint64(n), Tail: uint64(n)}
	return d
}

// A wrong value in the cache is seen: here somebody overwrites a network's
// entry after the last quake of that network.
func TestWrongCacheIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := played(t, records)
	held := d.expected()
	timing := newTiming(len(records))
	if r := d.report(held, records, nil, timing, 0); !r.OK || r.RecoveryMS != 1000 {
		t.Fatalf("report %+v", r)
	}
	for network := range held {
		held[network] = []byte("{}")
		break
	}
	if r := d.report(held, records, nil, timing, 0); r.CacheCorrect || r.CacheOK() || r.OK {
		t.Errorf("report %+v", r)
	}
	held["zz"] = []byte("{}")
	if r := d.report(held, records, nil, timing, 0); r.CacheOK() {
		t.Errorf("a network too many: %+v", r)
	}
}

// A record that is missing from the log, or another in its place, is seen.
func TestWrongLogIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := played(t, records)
	other := slices.Clone(records)
	other[7] = []byte("{}")
	for name, again := range map[string][][]byte{"short": records[:19], "other": other, "empty": nil} {
		if r := d.report(d.expected(), again, nil, newTiming(20), 0); r.LogOK() || r.OK {
			t.Errorf("%s: report %+v", name, r)
		}
	}
	d.kill = Kill{}
	if r := d.report(d.expected(), records, nil, newTiming(20), 0); r.LogOK() || r.OK {
		t.Errorf("without a kill: report %+v", r)
	}
}

// What the group did is counted from what its workers say.
func TestQueueIsCounted(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:100]
	d := played(t, records)
	r := d.report(d.expected(), records, nil, newTiming(100), 0)
	want := QueueReport{
		QueueFinished: 100, Strong: 4, StrongWorked: 4, QueueClaims: 103, QueueRedeliveries: 2,
		WorkerKilled: true, ClaimsHeld: 1, ClaimsBack: 1, ClaimsBackMS: 1000,
		Poison: "35km S of Jarm, Afghanistan", PoisonAttempts: 2, MaxAttempts: 3, GivenUp: true, DeadLetters: 1,
		Redriven: true, RedrivenWorked: true, QueueCommitted: 100, QueueTail: 100, records: 100,
	}
	if r.QueueReport != want || !r.OK {
		t.Errorf("report %+v", r)
	}
}

// Whatever is wrong in the queue is seen.
func TestWrongQueueIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:100]
	for name, spoil := range map[string]func(q *queue){
		"a record that no worker finished": func(q *queue) { q.Finished-- },
		"a strong one that none worked":    func(q *queue) { q.Worked-- },
		"a cursor short of the end":        func(q *queue) { q.end.Committed-- },
		"a record too many":                func(q *queue) { q.end.Tail++ },
		"one in flight":                    func(q *queue) { q.end.InFlight++ },
		"one owed":                         func(q *queue) { q.end.Owed++ },
		"no worker killed":                 func(q *queue) { q.Killed = false },
		"nothing in its hands":             func(q *queue) { q.Held, q.Back = 0, 0 },
		"a claim that did not come back":   func(q *queue) { q.Back-- },
		"claims back without being counted": func(q *queue) {
			q.Redelivered = 0
		},
		"no failure":                  func(q *queue) { q.Poison.Attempts = 0 },
		"a failure too many":          func(q *queue) { q.Poison.Attempts = 5 },
		"another dead letter":         func(q *queue) { q.letters++ },
		"another record given up":     func(q *queue) { q.Poison.GivenUp = false },
		"poison left":                 func(q *queue) { q.Poison.Redriven = false },
		"poison redriven, not worked": func(q *queue) { q.Poison.Worked = false },
		"a dead letter left":          func(q *queue) { q.end.DeadLetters++ },
	} {
		d := played(t, records)
		spoil(&d.queue)
		if r := d.report(d.expected(), records, nil, newTiming(100), 0); r.OK || !r.StreamOK() || !r.CacheOK() || !r.LogOK() {
			t.Errorf("%s: report %+v", name, r)
		}
	}
}

// Only what the killed worker had, and had not said it was done with, has to
// come back, and only a later delivery is that.
func TestClaimsOfTheKilledWorker(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := New(records, 0, nil)
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	q, timing, now := &d.queue, newTiming(20), time.Unix(3, 0)
	q.note(doomed, deed{Did: didPass, Offset: 0, Attempts: 1}, now, timing)
	q.note(doomed, deed{Did: didHold, Offset: 2, Attempts: 1}, now, timing)
	q.note(survivor, deed{Did: didPass, Offset: 4, Attempts: 1}, now, timing)
	// A claim may have lapsed before the worker was killed.
	q.note(survivor, deed{Did: didPass, Offset: 3, Attempts: 2}, now, timing)
	q.killed(map[uint64]uint32{0: 1, 1: 1, 2: 1, 3: 1, 4: 2}, now, now)
	if want := map[uint64]uint32{1: 1, 2: 1}; !maps.Equal(q.held, want) || q.Held != 2 || q.Back != 0 || q.recovered() {
		t.Errorf("held %v, %d back", q.held, q.Back)
	}
	q.note(survivor, deed{Did: didPass, Offset: 1, Attempts: 1}, now, timing)
	if q.Back != 0 {
		t.Error("a delivery that was not a later one counts as back")
	}
	q.note(survivor, deed{Did: didPass, Offset: 1, Attempts: 2}, now, timing)
	q.note(survivor, deed{Did: didBegin, Offset: 2, Attempts: 2}, now.Add(time.Minute), timing)
	if q.Back != 2 || !q.recovered() || q.BackAfter != time.Minute {
		t.Errorf("%d back after %v", q.Back, q.BackAfter)
	}
}

// The demo needs work for its group.
func TestFeedWithoutStrongQuakesIsRefused(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())
	if err := New(records[3:15], 0, nil).prepare(); err == nil || !strings.Contains(err.Error(), "strong") {
		t.Errorf("error %v", err)
	}
	d := New(records, 0, nil)
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	if d.queue.Strong != 39 || d.queue.Poison.Offset != 809 {
		t.Errorf("%d strong, poison at %d", d.queue.Strong, d.queue.Poison.Offset)
	}
}
