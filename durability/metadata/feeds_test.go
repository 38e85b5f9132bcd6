package metadata

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

const (
	feedWriters  = 16
	feedWatchers = 20
	// snapshotEvery is how often some watcher is told to take a snapshot.
	snapshotEvery = 100 * time.Millisecond
)

// TestFeedsLoseNothing has writers change streams through all instances, an
// auditor for each instance that reads every change of it, and watchers that
// read from any, sleep, resume, and take snapshots in between. All copies come to
// the same in the end.
func TestFeedsLoseNothing(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			feedsLoseNothing(t, open(t), int64(setting(t, "CHANGES", 600)))
		})
	}
}

func feedsLoseNothing(t *testing.T, p *plane, most int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var count tally
	began := time.Now()
	var mu sync.Mutex
	var errs []error
	run := func(group *sync.WaitGroup, what string, work func() error) {
		group.Go(func() {
			if err := work(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
				cancel() // the others cannot end in order any more
			}
		})
	}
	stop, snap := make(chan struct{}), make(chan struct{})
	var readers, writing sync.WaitGroup
	var auditors, watchers []*follower
	for n, url := range p.urls {
		f := &follower{api: newClient(t, url, p.operator)}
		auditors = append(auditors, f)
		run(&readers, fmt.Sprintf("auditor of instance %d", n+1), func() error { return f.run(ctx, stop) })
	}
	for n := range feedWatchers {
		f := &follower{api: newClient(t, p.urlFrom(n), p.operator), mayMiss: true}
		watchers = append(watchers, f)
		rng := rand.New(rand.NewPCG(11, uint64(n)))
		run(&readers, fmt.Sprintf("watcher %d", n), func() error { return f.wander(ctx, rng, snap, stop) })
	}
	readers.Go(func() {
		tick := time.NewTicker(snapshotEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
			select {
			case snap <- struct{}{}:
			default: // everybody is busy
			}
		}
	})
	writers := make([]*writer, feedWriters)
	for n := range writers {
		w := newWriter(n, onceClient(t, p.urlFrom(n), p.admin), true, &count)
		writers[n] = w
		run(&writing, fmt.Sprintf("writer %d", n), func() error { return w.run(ctx, stop, most) })
	}
	writing.Wait()
	took := time.Since(began)
	close(stop)
	readers.Wait()
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		return
	}

	final := p.settled(t)
	have := make(map[string]model.Stream, len(final.Items))
	for _, r := range final.Items {
		have[r.Stream] = r
	}
	for _, w := range writers {
		if err := w.check(have); err != nil {
			t.Error(err)
		}
	}
	if len(have) > 0 {
		t.Errorf("%d streams are there that nobody wrote", len(have))
	}
	// One write is one change, and each auditor saw every one since it began.
	if uint64(count.done.Load()) != final.NextSeq {
		t.Errorf("%d writes made %d changes", count.done.Load(), final.NextSeq)
	}
	var read int64
	snapshots, behind := 0, 0
	for _, f := range append(auditors, watchers...) {
		read += f.changes.Load()
		snapshots += f.snapshots
		behind += f.behind
	}
	t.Logf("%s, in %v; %d changes read, %d snapshots, %d answers of an instance that was behind",
		&count, took.Round(time.Millisecond), read, snapshots, behind)
}
