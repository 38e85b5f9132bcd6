package broker

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// A Broker is streams and caches by name, and the pipeline publishes go
// through. All methods are safe for concurrent use.
type Broker struct {
	cfg     Config
	clock   Clock
	catalog catalog
	queue   *schedule.Scheduler
	budgets *admission.Budgets
	hub     *stream.Hub
	caches  *cache.Store
	groups  *queue.Store
	jobs    jobPool
	failed  atomic.Uint64
	ids     producerIDs

	// stopping ends when the broker drains, with ErrClosed as its cause.
	stopping context.Context
	stop     context.CancelCauseFunc
}

// New returns a broker without tenants. Close it.
func New(cfg Config, clock Clock) *Broker {
	cfg = cfg.withDefaults()
	if cfg.Storage != nil {
		cfg.Streams.Logs = streamLogs{cfg.Storage}
		cfg.Caches.Storage = cfg.Storage
		cfg.Groups.Storage = cfg.Storage
	}
	b := &Broker{clock: clock}
	cfg.Streams.Release = b.endGroups
	b.cfg = cfg
	b.queue = schedule.New(cfg.Schedule)
	b.budgets = admission.NewBudgets(admission.Limits{
		IdentityBytes:   cfg.ConnInflightBytes,
		ConnectionBytes: cfg.ConnTotalInflightBytes,
		ProcessBytes:    cfg.InflightBytes,
	})
	b.hub = stream.NewHub(cfg.Streams, clock)
	b.caches = cache.NewStore(cfg.Caches, clock)
	b.groups = queue.NewStore(cfg.Groups, clock)
	b.catalog.init()
	b.stopping, b.stop = context.WithCancelCause(context.Background())
	return b
}

// Groups are the consumer groups of the broker's streams.
func (b *Broker) Groups() *queue.Store { return b.groups }

// endGroups ends the groups of a shard that serves no longer.
func (b *Broker) endGroups(sh *stream.Shard, cause error) { b.groups.End(sh, cause) }

// NewConnection opens the byte budget of one peer connection. Close it with
// the connection.
func (b *Broker) NewConnection() *admission.Connection { return b.budgets.NewConnection() }

// Drain refuses new publishes with [ErrClosed], those that wait for room
// included, and waits until all accepted ones are complete. Subscriptions and
// caches go on. It returns the cause of ctx if that ends first; Stats tells
// what was left.
func (b *Broker) Drain(ctx context.Context) error {
	b.stop(ErrClosed)
	if err := b.queue.Drain(ctx); err != nil {
		return err
	}
	for _, s := range b.Streams() {
		for i := range s.Shards() {
			if err := s.Shard(i).Drain(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends everything: publishes that are still queued fail with
// [ErrClosed], subscriptions end with it after what they had queued, logs are
// closed. Closing again does nothing.
func (b *Broker) Close() {
	b.stop(ErrClosed)
	streams, caches := b.catalog.close()
	for _, s := range streams {
		s.End(ErrClosed)
		for i := range s.Shards() {
			b.endGroups(s.Shard(i), ErrClosed) // with this cause, before all of them are closed
		}
	}
	for _, c := range caches {
		c.Close(ErrClosed)
	}
	b.queue.Close()
	b.caches.Close()
	b.groups.Close()
	b.hub.Close()
}

// closedAs turns the scheduler's word for a closed broker into ours.
func closedAs(err error) error {
	if errors.Is(err, schedule.ErrClosed) {
		return ErrClosed
	}
	return err
}
