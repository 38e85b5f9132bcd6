package tracker

// Time is in nanoseconds on the caller's clock. Zero is no time.
type Time = int64

// Options bound a group.
type Options struct {
	// MaxInFlight bounds the unsettled records; at least 1 (broker 10.4).
	MaxInFlight int
	// MaxAttempts is how often a record is handed out before it is given up; 0
	// is without limit (broker 10.4).
	MaxAttempts uint32
}

// Start is what a group's durable state says.
type Start struct {
	// Committed: everything below is finished.
	Committed uint64
	// Handed: offsets below may have been handed out, and count as handed out
	// once where Attempts has none.
	Handed uint64
	// Rebuilt: there was a durable trace of the group, so that claims may have
	// been lost.
	Rebuilt bool
	// Tail is the committed tail now.
	Tail uint64
	// Attempts is how often records were handed out. Those below Committed are
	// ignored unless redriven. Not kept.
	Attempts map[uint64]uint32
	// Redriven are owed from the start, handed out as often as Attempts says, 0
	// where it does not. Not kept.
	Redriven []uint64
}

// Tracker holds the claims of one group on one shard. It is not safe for
// concurrent use.
type Tracker struct {
	o Options

	committed uint64
	// highWater is never finished and never in play: whatever makes it so moves
	// it on (advance).
	highWater uint64
	ahead     spans // finished, above committed

	entries   map[uint64]entry
	tally     tally
	deadlines heap[deadline] // of what is timed
	owed      heap[place]    // of what is owed to everybody
	holders   holders
	members   map[member]*reclaimed
	lapsed    uint64

	// What a crash left behind.
	recovered map[uint64]uint32 // attempts of records not handed out since
	marked    map[uint64]bool   // redriven before their turn; true: has an attempts key
	rebuilt   bool
	marks     bool   // a durable trace of the group exists
	firstTail uint64 // settles below are taken unseen; 0 unless rebuilt, and after a seek
	handed    uint64
	seekEnd   uint64 // offsets below may have been handed out before a seek
}

// New builds the tracker of a group from its durable state.
func New(o Options, s Start) *Tracker {
	t := &Tracker{
		o:         o,
		committed: s.Committed,
		highWater: s.Committed,
		entries:   make(map[uint64]entry),
		rebuilt:   s.Rebuilt,
		marks:     s.Rebuilt,
		handed:    s.Handed,
	}
	if s.Rebuilt {
		t.firstTail = s.Tail
	}
	for _, offset := range s.Redriven {
		if _, twice := t.entries[offset]; twice {
			continue
		}
		e := redrivenEntry(s.Attempts[offset] > 0)
		e.attempts = s.Attempts[offset]
		t.add(offset, e)
	}
	for offset, attempts := range s.Attempts {
		if _, owed := t.entries[offset]; owed || offset < s.Committed {
			continue
		}
		if t.recovered == nil {
			t.recovered = make(map[uint64]uint32)
		}
		t.recovered[offset] = attempts
	}
	t.advance()
	return t
}

// Committed is the cursor: everything below is finished.
func (t *Tracker) Committed() uint64 { return t.committed }

// HighWater is the next offset that was never handed out.
func (t *Tracker) HighWater() uint64 { return t.highWater }

// Handed is the mark to write: offsets below may have been handed out.
func (t *Tracker) Handed() uint64 { return max(t.handed, t.highWater) }

// Marked tells that a durable trace of the group exists, whichever it is: from
// here on hand-outs of new records need not wait for theirs (Claim.Suspect).
// A rebuilt tracker knows.
func (t *Tracker) Marked() { t.marks = true }

// Counts are the unsettled records now.
func (t *Tracker) Counts() Counts {
	c := Counts{
		Claimed: t.tally.state[Claimed],
		Delayed: t.tally.state[Delayed],
		Burying: t.tally.state[Burying],
		Owed:    t.tally.state[Owed],
	}
	c.InFlight = c.Claimed + c.Delayed + c.Burying
	return c
}

// Lapsed counts the claims that ended by their deadline.
func (t *Tracker) Lapsed() uint64 { return t.lapsed }

// Busy: a claim stands, or a nack is delayed, or a dead letter is being written.
// The tracker must then not be dropped (broker 10.2).
func (t *Tracker) Busy() bool { return t.Counts().InFlight > 0 }

// Ahead: records above the cursor are finished, which the cursor on disk does not
// say. A tracker built from it would hand them out again.
func (t *Tracker) Ahead() bool { return len(t.ahead.live()) > 0 }

// advance moves the high water over what is finished or in play already.
func (t *Tracker) advance() {
	t.highWater = max(t.highWater, t.committed)
	for {
		if end, ok := t.ahead.end(t.highWater); ok {
			t.highWater = end
		} else if _, ok := t.entries[t.highWater]; ok {
			t.highWater++
		} else {
			return
		}
	}
}

// finished says whether a record that is not in play is settled; otherwise its
// turn is still to come.
func (t *Tracker) finished(offset uint64) bool {
	if offset < t.highWater {
		return true
	}
	_, ok := t.ahead.end(offset)
	return ok
}

// exhausted: it was handed out as often as it may be.
func (t *Tracker) exhausted(attempts uint32) bool {
	return t.o.MaxAttempts > 0 && attempts >= t.o.MaxAttempts
}
