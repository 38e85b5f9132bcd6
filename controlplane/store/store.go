// Package store says what the control plane keeps and how: one interface that
// every backend fulfils and one contract suite that all of them pass
// (storetest). Handlers do not know which backend runs.
//
// A store makes no randomness; ids and keys come from its callers. It reads one
// clock, its own: the database's, the Raft leader's, or the process's. Every
// write is one transaction with its entry in the feed, and the sequence of a
// feed is the order of its commits (control plane 5.2, 10).
package store

import (
	"context"
	"time"

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

// Catalog is who exists. Creating what is there is a [*ConflictError] (Exists);
// creating inside what is not there, and changing or deleting what is not there,
// a [*NotFoundError]. Deleting a tenant or namespace deletes all that is in it,
// with a change, and for streams and caches a tombstone, for each record, in
// the order of their keys: assignments, then streams and caches, then
// namespaces, then the tenant. Deleting a stream or cache deletes its
// assignments and reports.
type Catalog interface {
	Tenants(ctx context.Context) ([]model.Tenant, error)
	Tenant(ctx context.Context, id string) (model.Tenant, error)
	CreateTenant(ctx context.Context, t model.Tenant) error
	DeleteTenant(ctx context.Context, id string) error

	// Namespaces of a tenant; a tenant that is not there is a NotFoundError.
	Namespaces(ctx context.Context, tenant string) ([]model.Namespace, error)
	Namespace(ctx context.Context, k model.NamespaceKey) (model.Namespace, error)
	CreateNamespace(ctx context.Context, n model.Namespace) error
	DeleteNamespace(ctx context.Context, k model.NamespaceKey) error

	Streams(ctx context.Context, k model.NamespaceKey) ([]model.Stream, error)
	Stream(ctx context.Context, k model.StreamKey) (model.Stream, error)
	CreateStream(ctx context.Context, s model.Stream) error
	PatchStream(ctx context.Context, k model.StreamKey, p model.StreamPatch) (model.Stream, error)
	DeleteStream(ctx context.Context, k model.StreamKey) error

	Caches(ctx context.Context, k model.NamespaceKey) ([]model.Cache, error)
	Cache(ctx context.Context, k model.CacheKey) (model.Cache, error)
	CreateCache(ctx context.Context, c model.Cache) error
	PatchCache(ctx context.Context, k model.CacheKey, p model.CachePatch) (model.Cache, error)
	DeleteCache(ctx context.Context, k model.CacheKey) error

	// CreateResources creates streams and caches of one namespace, all or none.
	CreateResources(ctx context.Context, k model.NamespaceKey, streams []model.Stream, caches []model.Cache) error

	TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error)
	NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error)
	StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error)
	CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error)
	TenantChanges(ctx context.Context, since uint64) (model.Page[model.TenantChange], error)
	NamespaceChanges(ctx context.Context, since uint64) (model.Page[model.NamespaceChange], error)
	StreamChanges(ctx context.Context, since uint64) (model.Page[model.StreamChange], error)
	CacheChanges(ctx context.Context, since uint64) (model.Page[model.CacheChange], error)

	// Bridges between regions. Putting one that is there is nothing; deleting one
	// that is not a NotFoundError.
	Bridges(ctx context.Context) ([]model.Bridge, error)
	PutBridge(ctx context.Context, b model.Bridge) error
	DeleteBridge(ctx context.Context, b model.Bridge) error
}

// Nodes is the node catalogue (control plane 6).
type Nodes interface {
	Nodes(ctx context.Context) ([]model.Node, error)
	Node(ctx context.Context, id string) (model.Node, error)
	// RegisterNode makes the node live, on the store's clock: incarnation 0 for a
	// new id, one more for a known one, whose spec is replaced. One that was down
	// or left advances the placement token, so that a pass that read it as gone
	// cannot give away what it serves. Conflicts: AddressTaken, LacksFeature.
	RegisterNode(ctx context.Context, id string, spec model.NodeSpec) (model.Node, error)
	// PatchNode may move between live and draining only, else BadLifecycle.
	PatchNode(ctx context.Context, id string, p model.NodePatch) (model.Node, error)
	// SetLifecycle moves a node; changed is false where it was there already, and
	// nothing is published. down and left to draining is BadLifecycle; only
	// registration makes a node live that is down or left.
	SetLifecycle(ctx context.Context, id string, to model.Lifecycle) (n model.Node, changed bool, err error)
	// DeleteNode refuses, with InUse, a node that is live or draining or that any
	// assignment names.
	DeleteNode(ctx context.Context, id string) error
	// Heartbeat records one, on the store's clock and never backwards. An
	// incarnation below the recorded one is OldIncarnation. It revives nobody and
	// publishes nothing. The node is returned as it is.
	Heartbeat(ctx context.Context, id string, incarnation uint64) (model.Node, error)
	// ExpireStale marks down every live or draining node whose last heartbeat is
	// before the cutoff; two sweeps at once claim each node once.
	ExpireStale(ctx context.Context, beforeMillis uint64) ([]model.Expired, error)
	NodesSnapshot(ctx context.Context) (model.Snapshot[model.Node], error)
	NodeChanges(ctx context.Context, since uint64) (model.Page[model.NodeChange], error)

	// EnabledFeatures of the fleet, sorted. EnableFeature is never undone; it
	// answers with the serving nodes that lack the feature and enables it only
	// if there is none.
	EnabledFeatures(ctx context.Context) ([]string, error)
	EnableFeature(ctx context.Context, feature string) (lacking []string, err error)
}

// PutResult is what became of a conditional write.
type PutResult struct {
	Outcome PutOutcome
	Written model.Assignment // as stored, with its generation
	Token   uint64           // the placement token after the call
	Current *uint64          // of Stale: the generation there is, nil for none
}

// PutOutcome is the outcome of a conditional write.
type PutOutcome string

// The outcomes (control plane 7.7).
const (
	Written PutOutcome = "written"
	Stale   PutOutcome = "stale"  // another generation than expected: skip the shard
	Fenced  PutOutcome = "fenced" // another token: end the pass
)

// MaxPuts is the most assignments that one PutAssignmentsIf writes.
const MaxPuts = 256

// A Put is one conditional write of many.
type Put struct {
	Assignment model.Assignment `json:"assignment"`
	Expected   *uint64          `json:"expected"` // the generation there must be, nil for no assignment
}

// Shards is who serves what.
type Shards interface {
	Assignments(ctx context.Context) ([]model.Assignment, error)
	// AssignmentsOf a node: those it leads or follows.
	AssignmentsOf(ctx context.Context, node string) ([]model.Assignment, error)
	Assignment(ctx context.Context, k model.ShardKey) (model.Assignment, error)
	// PutAssignmentIf writes a if the shard is still at the expected generation
	// (nil: still has none) and the placement token is still token, which a
	// written assignment advances by one. The generation of a is ignored. A
	// breach of control plane 7.9 is a ConflictError (BadAssignment): a shard
	// number the owner does not have, an unknown node, a leader among the
	// replicas, a repeat, a successor or joining node that is no replica, a
	// state that cannot follow. An owner that is gone is a NotFoundError.
	PutAssignmentIf(ctx context.Context, a model.Assignment, expected *uint64, token uint64) (PutResult, error)
	// PutAssignmentsIf is PutAssignmentIf for up to MaxPuts shards in one step:
	// in order, each at its own expected generation; a stale one is skipped, and
	// each of the others advances the token by one. Another token fences them
	// all. If one of them would be an error, none is written and that error is
	// returned. Results are in the order of the puts, and the token of each is
	// the one after the call.
	PutAssignmentsIf(ctx context.Context, puts []Put, token uint64) ([]PutResult, error)
	DeleteAssignment(ctx context.Context, k model.ShardKey) error
	AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error)
	AssignmentChanges(ctx context.Context, since uint64) (model.Page[model.AssignmentChange], error)
	// AssignmentsChanged returns a channel that is closed at the next assignment
	// change this instance makes or learns of by itself. Take it before reading.
	AssignmentsChanged() <-chan struct{}

	// RecordReports judges and stores what a leader reports, on the store's
	// clock, each shard in the same step as the check that the sender leads it:
	// one outcome a report, in order. The latest of the assignment's generation
	// replaces the one before. ReportedAtMillis is ignored.
	RecordReports(ctx context.Context, sender string, reports []model.ReplicaReport) ([]model.ReportOutcome, error)
	Reports(ctx context.Context) ([]model.ReplicaReport, error)
}

// Placement is what planners share (control plane 7.7, 7.8).
type Placement interface {
	MovesPaused(ctx context.Context) (bool, error)
	SetMovesPaused(ctx context.Context, paused bool) error
	PlacementToken(ctx context.Context) (uint64, error)
	// AcquireLease takes or renews the lease of the timed planner, judged by the
	// store's clock. A change of holder advances the placement token. Under Raft
	// it is confirmed leadership, whoever asks.
	AcquireLease(ctx context.Context, holder string, ttl time.Duration) (Lease, error)
	ReleaseLease(ctx context.Context, holder string) error
	// MayPlan says whether this instance may sweep and plan when woken: always,
	// but under Raft only as the confirmed leader.
	MayPlan(ctx context.Context) (bool, error)
}

// A Lease is the answer to who plans.
type Lease struct {
	Held      bool
	TakenOver bool // held now, and not before
}

// MaxSigningKeys is the most signing keys of a tenant.
const MaxSigningKeys = 32

// Auth is what identities rest on (control plane 15 to 17). All methods but
// SigningKeys answer a tenant that is not there with a NotFoundError.
type Auth interface {
	// Issuers of a tenant; Put inserts or replaces; Delete of none is NotFound.
	Issuers(ctx context.Context, tenant string) ([]model.IdpIssuer, error)
	PutIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error
	DeleteIssuer(ctx context.Context, tenant, issuer string) error

	// Adding a rule that is there is nothing; removing one that is not is
	// NotFound.
	Policies(ctx context.Context, tenant string) ([]model.Policy, error)
	AddPolicy(ctx context.Context, tenant string, p model.Policy) error
	RemovePolicy(ctx context.Context, tenant string, p model.Policy) error
	Groupings(ctx context.Context, tenant string) ([]model.Grouping, error)
	AddGrouping(ctx context.Context, tenant string, g model.Grouping) error
	RemoveGrouping(ctx context.Context, tenant string, g model.Grouping) error

	// SigningKeys of a tenant, current first, then staged, then previous, each
	// newest first; empty for a tenant that is unknown or has none.
	SigningKeys(ctx context.Context, tenant string) ([]model.SigningKey, error)
	// EnsureSigningKey installs key as current unless the tenant has one.
	EnsureSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error)
	// Stage adds a key; TooManyKeys at MaxSigningKeys, Exists for a kid that is there.
	StageSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error)
	// Activate makes a key current and the current one previous. NotFound.
	ActivateSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error)
	// Retire forgets a key. NotFound, CurrentKey.
	RetireSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error)

	// Bootstrapped says whether the tenant was initialised. BootstrapTenant does
	// it in one step, exactly once: else Bootstrapped.
	Bootstrapped(ctx context.Context, tenant string) (bool, error)
	BootstrapTenant(ctx context.Context, tenant string, seed model.AuthSeed) error

	InsertRefreshToken(ctx context.Context, t model.RefreshToken) error
	// TakeRefreshToken marks a token used and answers it as it was before, so
	// that of two callers one sees it unused. An unknown one is NotFound.
	TakeRefreshToken(ctx context.Context, tenant, tokenID string) (model.RefreshToken, error)
	RevokeFamily(ctx context.Context, tenant, familyID string) (revoked int, err error)
	RevokePrincipal(ctx context.Context, tenant, principalID string) (revoked int, err error)
	// PurgeRefreshTokens forgets tokens of all tenants that expired before.
	PurgeRefreshTokens(ctx context.Context, beforeSecs uint64) (purged int, err error)
}
