package placed

import "errors"

// ErrNotPlaced refuses an order about a shard that is served whatever the
// control plane says.
var ErrNotPlaced = errors.New("shards of this name are served without an assignment")

// A Seat holds the newest order about one shard. Orders are known by their
// generation, and older ones change nothing, so that they may come twice and in
// any order (control plane 5.3). The zero Seat has been given none.
type Seat struct {
	ordered    bool
	generation uint64
	assigned   bool
	reason     string
}

// Generation is that of the newest order, 0 without one.
func (s *Seat) Generation() uint64 { return s.generation }

// Assigned says that the newest order is to serve the shard.
func (s *Seat) Assigned() bool { return s.assigned }

// Reason is why the shard was taken away.
func (s *Seat) Reason() string { return s.reason }

// Assign takes an order to serve the shard and says whether that has to begin.
func (s *Seat) Assign(generation uint64) (begin bool) {
	if s.ordered && generation <= s.generation {
		return false
	}
	begin = !s.assigned
	s.ordered, s.generation, s.assigned, s.reason = true, generation, true, ""
	return begin
}

// Unassign takes an order to serve the shard no longer and says whether that
// has to end.
func (s *Seat) Unassign(generation uint64, reason string) (end bool) {
	if s.ordered && generation <= s.generation {
		return false
	}
	end = s.assigned
	s.ordered, s.generation, s.assigned, s.reason = true, generation, false, reason
	return end
}

// Release forgets all orders and says whether serving has to end.
func (s *Seat) Release(reason string) (end bool) {
	end = s.assigned
	*s = Seat{reason: reason}
	return end
}
