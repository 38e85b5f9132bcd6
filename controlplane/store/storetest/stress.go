package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// FeedsOptions size a run of [Feeds].
type FeedsOptions struct {
	Changes  int    // of streams and namespaces to make, at least
	Writers  int    // 0 is 16
	Watchers int    // 0 is 20
	Seed     uint64 // of what writers and watchers choose
}

// ahead is how many changes the writers may be ahead of the slowest auditor, or
// little more: well below what a store keeps.
const ahead = 1000

// Feeds has writers create, patch and delete streams and namespaces through any
// of stores, which are instances over the same data, while watchers follow the
// two feeds (bug report BR-44). A watcher reads from any store at any moment, and
// now and then takes a new snapshot. An auditor for each store reads every
// change from the first to the last. In the end every copy must equal the final
// snapshot; on the way no sequence may be missing or come twice, and every change
// must fit the record that it changes.
//
// The stores are empty, and keep the default number of changes.
func Feeds(t *testing.T, stores []store.Store, o FeedsOptions) {
	if o.Writers == 0 {
		o.Writers = 16
	}
	if o.Watchers == 0 {
		o.Watchers = 20
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Duration(o.Changes)*20*time.Millisecond)
	defer cancel()
	r := &run{
		ctx: ctx, cancel: cancel, stores: stores, o: o,
		snapshots: make(chan struct{}, o.Watchers), done: make(chan struct{}),
		audited: make([]atomic.Uint64, len(stores)), cursors: make([]atomic.Uint64, len(stores)),
	}
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}

	var writers, readers sync.WaitGroup
	for w := range o.Writers {
		writers.Go(func() { r.failed(fmt.Sprintf("writer %d", w), r.write(w)) })
	}
	for i := range stores {
		readers.Go(func() { r.failed(fmt.Sprintf("auditor of store %d", i), r.audit(i)) })
	}
	for w := range o.Watchers {
		readers.Go(func() { r.failed(fmt.Sprintf("watcher %d", w), r.watch(w)) })
	}
	writers.Wait()
	r.failed("final snapshot", r.finish())
	close(r.done)
	readers.Wait()
	if r.err != nil {
		t.Fatal(r.err)
	}
	made := r.final.streams.NextSeq - r.start.streams.NextSeq + r.final.namespaces.NextSeq - r.start.namespaces.NextSeq
	if made < uint64(o.Changes) {
		t.Errorf("%d changes were made, want %d", made, o.Changes)
	}
	if r.taken.Load() == 0 || r.followed.Load() == 0 {
		t.Errorf("the watchers took %d snapshots and followed %d changes: they showed nothing", r.taken.Load(), r.followed.Load())
	}
	t.Logf("%d changes, %d left at the end; watchers took %d snapshots and followed %d changes; each of %d auditors saw all",
		made, len(r.final.streams.Items), r.taken.Load(), r.followed.Load(), len(stores))
}

// A run is one of Feeds.
type run struct {
	ctx    context.Context
	cancel context.CancelFunc
	stores []store.Store
	o      FeedsOptions

	start, final state
	snapshots    chan struct{}   // wishes for a snapshot, for any watcher
	done         chan struct{}   // closed when final is there
	ops          atomic.Uint64   // of the writers
	head         atomic.Uint64   // of the feed of streams, now and then
	audited      []atomic.Uint64 // changes that each auditor has seen
	cursors      []atomic.Uint64 // of each auditor in the feed of streams

	taken, followed atomic.Uint64

	mu  sync.Mutex
	err error // the first
}

// state is what the readers copy.
type state struct {
	streams    model.Snapshot[model.Stream]
	namespaces model.Snapshot[model.Namespace]
}

func (r *run) failed(who string, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", who, err)
	}
	r.cancel()
}

func (r *run) read() (s state, err error) {
	if s.streams, err = r.stores[0].StreamsSnapshot(r.ctx); err != nil {
		return s, err
	}
	s.namespaces, err = r.stores[0].NamespacesSnapshot(r.ctx)
	return s, err
}

const feedsTenant = "feeds"

func (r *run) prepare() (err error) {
	if err := r.stores[0].CreateTenant(r.ctx, model.Tenant{TenantID: feedsTenant}); err != nil {
		return err
	}
	r.start, err = r.read()
	return err
}

// finish reads what all copies must come to.
func (r *run) finish() (err error) {
	r.final, err = r.read()
	return err
}

func slowest(auditors []atomic.Uint64) uint64 {
	n := auditors[0].Load()
	for i := range auditors {
		n = min(n, auditors[i].Load())
	}
	return n
}

// pause lets others run, for a random moment.
func (r *run) pause(rng *rand.Rand, atMost time.Duration) error {
	timer := time.NewTimer(time.Duration(rng.Int64N(int64(atMost))))
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-timer.C:
		return nil
	}
}
