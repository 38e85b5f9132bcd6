package planner

import (
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
)

// The defaults of [Options] (control plane 21).
const (
	DefaultReconcile = 5 * time.Second
	DefaultSweep     = 2 * time.Second
	DefaultHeartbeat = 5 * time.Second
	DefaultExpiry    = 15 * time.Second
)

// Options are what a planner works with. Store, Policy and Holder have no
// default.
type Options struct {
	Store  store.Store
	Policy placement.Policy
	// Holder names this instance in the lease. It is unique to the process.
	Holder string

	Reconcile time.Duration // between timed passes; 0 means 5 s
	Sweep     time.Duration // between sweeps; 0 means 2 s
	Heartbeat time.Duration // of brokers; 0 means 5 s
	Expiry    time.Duration // length of a broker's lease; 0 means 15 s
	// Margin is waited beyond a lease before it is given to another (control
	// plane 6.4). It is raised to a quarter of Expiry.
	Margin time.Duration
	// Watch is how often the heads of the feeds are read to notice streams,
	// caches and nodes that another instance wrote. It is meant for stores that
	// read locally, as Raft does; 0 is never.
	Watch time.Duration

	Clock    func() time.Time // nil is time.Now
	Logger   *slog.Logger     // nil logs nothing
	Observer Observer         // nil observes nothing
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.Reconcile <= 0 {
		o.Reconcile = DefaultReconcile
	}
	if o.Sweep <= 0 {
		o.Sweep = DefaultSweep
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Expiry <= 0 {
		o.Expiry = DefaultExpiry
	}
	o.Margin = max(o.Margin, o.Expiry/4)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	return o
}

// leaseTTL is how long an instance that died holds the timed passes up.
func (o Options) leaseTTL() time.Duration { return 3 * o.Reconcile }

// reportTTL is how long a report counts (control plane 6.5).
func (o Options) reportTTL() time.Duration { return 2*o.Expiry + o.Heartbeat }
