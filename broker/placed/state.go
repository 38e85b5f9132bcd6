package placed

// A State is how a shard stands with this broker (control plane 6.6).
type State string

const (
	// Unassigned: another broker serves the shard, or none. Nothing of it is
	// open here.
	Unassigned State = "unassigned"
	// Opening: assigned, and its log is being opened.
	Opening State = "opening"
	// Active: served.
	Active State = "active"
	// Draining: taken away, and what was accepted before is being finished.
	Draining State = "draining"
	// Closed: its stream or cache was removed, or the broker stops.
	Closed State = "closed"
	// Failed: assigned and not served. The reason says why.
	Failed State = "failed"
)

// A Status describes a shard for inspection.
type Status struct {
	State State
	// Generation is that of the newest order, 0 without one.
	Generation uint64
	// Reason says more: why it was taken away or is not served. It may be empty.
	Reason string
}
