package memory

import (
	"context"
	"io"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// A Proposer gets a command applied to a machine, once, and answers with its
// result. It stamps the command's time. The error says that the command was not
// applied, or that this is not known: [*store.UnavailableError].
type Proposer interface {
	Propose(ctx context.Context, c Command) (Result, error)
}

// Hooks are what differs between the backends that use a [Machine].
type Hooks struct {
	Name    string
	Durable bool
	// Random is read for the names of writes; nil is crypto/rand.
	Random io.Reader
	// Now is the store's clock, in milliseconds; nil is the latest time applied.
	Now func(ctx context.Context) (uint64, error)
	// Serve says why this instance may not answer from its state, which is then
	// not asked; nil where it always may.
	Serve func() error
	// CatchUp brings the state to what was answered anywhere; nil where it is
	// always there.
	CatchUp func(ctx context.Context) error
	// Health is nil where nothing can be wrong but the state itself.
	Health func(ctx context.Context) error
	// MayPlan is nil where this instance always may.
	MayPlan func(ctx context.Context) (bool, error)
	// AcquireLease is nil where whoever asks gets it: [Machine.TakeLease].
	AcquireLease func(ctx context.Context, holder string, ttl time.Duration) (store.Lease, error)
	ReleaseLease func(ctx context.Context, holder string) error
	// Close is called once, by the first Close of the machine.
	Close func() error
}
