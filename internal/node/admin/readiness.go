package admin

import "sync"

// A State is where a node stands in its life.
type State int

// The states, in the order a node goes through them; it never goes back.
const (
	Starting State = iota // /ready answers 503 "starting"
	Serving               // /ready answers 200 "ok"
	Draining              // /ready answers 503 "draining"
)

// String is what /ready answers.
func (s State) String() string {
	switch s {
	case Serving:
		return "ok"
	case Draining:
		return "draining"
	default:
		return "starting"
	}
}

// A Gauge takes the value of felix_ready_state: 1 while serving, else 0.
type Gauge interface{ Set(float64) }

// Readiness says whether a node should be sent work. It is safe for
// concurrent use.
type Readiness struct {
	gauge  Gauge
	reason func() string

	mu    sync.Mutex
	state State
}

// NewReadiness begins in [Starting]. reason says why a node that serves is not
// ready all the same, and nothing while it is; nil never does.
func NewReadiness(gauge Gauge, reason func() string) *Readiness {
	gauge.Set(0)
	return &Readiness{gauge: gauge, reason: reason}
}

// Reach goes on to a later state; an earlier one changes nothing, so a start
// that completes during a stop does not make the node ready again.
func (r *Readiness) Reach(s State) {
	defer r.Check()
	r.mu.Lock()
	defer r.mu.Unlock()
	if s <= r.state {
		return
	}
	r.state = s
	if s != Serving {
		r.gauge.Set(0)
	}
}

// Check looks whether the node is ready now, and says so or why not: what
// /ready answers. The gauge shows the outcome.
func (r *Readiness) Check() (ready bool, text string) {
	why := ""
	if r.reason != nil && r.State() == Serving {
		why = r.reason()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state != Serving:
		return false, r.state.String()
	case why != "":
		r.gauge.Set(0)
		return false, why
	}
	r.gauge.Set(1)
	return true, r.state.String()
}

// State is where the node stands.
func (r *Readiness) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}
