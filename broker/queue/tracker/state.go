package tracker

// State is what became of an offset (broker 10.2).
type State uint8

const (
	// NotHandedOut: no worker got it yet.
	NotHandedOut State = iota
	// Claimed: a worker holds it until its deadline.
	Claimed
	// Delayed: handed back, and owed again only later.
	Delayed
	// Owed: to be handed out again, before anything new.
	Owed
	// Burying: its dead letter is being written.
	Burying
	// AtTail: there is no such record yet.
	AtTail

	states
)

func (s State) String() string {
	switch s {
	case NotHandedOut:
		return "not_handed_out"
	case Claimed:
		return "claimed"
	case Delayed:
		return "delayed"
	case Owed:
		return "owed"
	case Burying:
		return "dead_lettering"
	case AtTail:
		return "at_tail"
	}
	return "unknown"
}

// Counts are the unsettled records of a group, by state.
type Counts struct {
	InFlight int // Claimed + Delayed + Burying
	Claimed  int
	Delayed  int
	Burying  int
	Owed     int
}
