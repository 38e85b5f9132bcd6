// Package store says what the control plane keeps and how: one interface that
// every backend fulfils and one contract suite that all of them pass
// (storetest). Handlers do not know which backend runs.
//
// A store makes no randomness; ids and keys come from its callers. It reads one
// clock, its own: the database's, the Raft leader's, or the process's. Every
// write is one transaction with its entry in the feed, and the sequence of a
// feed is the order of its commits (control plane 5.2, 10).
//
// Begin at [Store]. Its parts are [Catalog], [Nodes], [Shards], [Placement] and
// [Auth], a file each. What every backend must decide alike stands beside them
// as functions: [JudgePut], [JudgeReport], [CheckLifecycle] and the like.
package store

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
)

// The defaults of [Limits].
const (
	DefaultChangesPage = 1000
	DefaultChangesKept = 10_000
)

// Limits bound the feeds.
type Limits struct {
	// ChangesPage is the most changes in one answer; 0 means 1,000.
	ChangesPage int
	// ChangesKept is how many changes of a feed, and tombstones of a kind, are
	// kept; 0 means 10,000, and it is never below ChangesPage.
	ChangesKept int
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	if l.ChangesPage <= 0 {
		l.ChangesPage = DefaultChangesPage
	}
	if l.ChangesKept <= 0 {
		l.ChangesKept = DefaultChangesKept
	}
	l.ChangesKept = max(l.ChangesKept, l.ChangesPage)
	return l
}

// A Store is the metadata of a cluster. It is safe for concurrent use. Errors
// that callers decide on are [*NotFoundError], [*ConflictError],
// [*UnavailableError] and [ErrClosed]. Lists are sorted by key and never nil;
// what is returned belongs to the caller.
type Store interface {
	Catalog
	Nodes
	Shards
	Placement
	Auth

	// CatchUp returns when reads of this instance see every write that any
	// instance had answered before the call. Under Raft a member that does not
	// lead asks the leader, and it is an [*UnavailableError] if that takes too
	// long; calls at one time share a question. Other backends always read what
	// is there.
	CatchUp(ctx context.Context) error
	// NowMillis is the store's clock.
	NowMillis(ctx context.Context) (uint64, error)
	// Health says why the store cannot serve, nil if it can. It is bounded by
	// ctx and asks nobody but the backend itself.
	Health(ctx context.Context) error
	// Durable says whether what is written survives the process.
	Durable() bool
	// Name of the backend: "memory", "postgres" or "raft".
	Name() string
	// Export reads everything at one instant. Import replaces everything in one
	// step; unless overwrite is set, a store that ever held anything refuses it
	// with [NotEmpty].
	Export(ctx context.Context) (*model.Dump, error)
	Import(ctx context.Context, d *model.Dump, overwrite bool) error
	// Close ends the store. Calls in flight may fail.
	Close() error
}
