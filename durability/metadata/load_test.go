package metadata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// A load is what goes on while instances come and go: nodes that send
// heartbeats, readers of a feed, and writers.
type load struct {
	p         *plane
	tally     tally
	beats     atomic.Int64
	joined    atomic.Int64
	nodes     []string
	followers []*follower
	writers   []*writer

	ctx    context.Context
	cancel context.CancelFunc
	stop   chan struct{}
	group  sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

const (
	loadNodes     = 20
	loadFollowers = 10
	loadWriters   = 4
	// beatInterval is far below what instances ask for, so that many heartbeats
	// meet each restart.
	beatInterval = 100 * time.Millisecond
)

// startLoad begins; insists is that of the writers.
func startLoad(t *testing.T, p *plane, insists bool) *load {
	t.Helper()
	l := &load{p: p, stop: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() {
		l.cancel()
		l.group.Wait()
	})
	for n := range loadNodes {
		id := fmt.Sprintf("node-%d", n)
		l.nodes = append(l.nodes, id)
		api := newClient(t, p.urlFrom(n), p.operator)
		l.goes("heartbeats of "+id, func() error { return l.beat(api, id, n) })
	}
	for n := range loadFollowers {
		f := &follower{api: newClient(t, p.urlFrom(n), p.operator)}
		l.followers = append(l.followers, f)
		l.goes(fmt.Sprintf("reader %d", n), func() error { return f.run(l.ctx, l.stop) })
	}
	for n := range loadWriters {
		w := newWriter(n, onceClient(t, p.urlFrom(n), p.admin), insists, &l.tally)
		l.writers = append(l.writers, w)
		l.goes(fmt.Sprintf("writer %d", n), func() error { return w.run(l.ctx, l.stop, 0) })
	}
	eventually(t, "every node is a member", func() error {
		if n := l.joined.Load(); n < loadNodes {
			return fmt.Errorf("%d of %d are", n, loadNodes)
		}
		return nil
	})
	l.progress(t, "at first")
	return l
}

func (l *load) goes(what string, run func() error) {
	l.group.Go(func() {
		if err := run(); err != nil && l.ctx.Err() == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errs = append(l.errs, fmt.Errorf("%s: %w", what, err))
		}
	})
}

// failed is the first thing that went wrong.
func (l *load) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// beat registers a node and keeps it alive.
func (l *load) beat(api *apiclient.Client, id string, n int) error {
	r, err := api.RegisterNode(l.ctx, apiclient.Registration{
		NodeID: id, AdvertiseAddr: fmt.Sprintf("10.1.0.%d:7000", n+1), Region: "local", Capacity: &model.Capacity{Weight: 1},
	})
	if err != nil {
		return err
	}
	l.joined.Add(1)
	for {
		select {
		case <-l.stop:
			return nil
		case <-time.After(beatInterval):
		}
		h, err := api.Heartbeat(l.ctx, id, r.Node.Status.Incarnation)
		if err != nil {
			return err
		}
		if h.Lifecycle != model.Live {
			return fmt.Errorf("the node is %s", h.Lifecycle)
		}
		l.beats.Add(1)
	}
}

// progress waits until everybody has come further.
func (l *load) progress(t *testing.T, when string) {
	t.Helper()
	beats, writes := l.beats.Load()+2*loadNodes, l.tally.done.Load()+2*loadWriters
	pages := make([]int64, len(l.followers))
	for i, f := range l.followers {
		pages[i] = f.pages.Load()
	}
	eventually(t, "progress "+when, func() error {
		if err := l.failed(); err != nil {
			t.Fatal(err)
		}
		if b, w := l.beats.Load(), l.tally.done.Load(); b < beats || w < writes {
			return fmt.Errorf("%d heartbeats of %d, %d writes of %d", b, beats, w, writes)
		}
		for i, f := range l.followers {
			if f.pages.Load() <= pages[i] {
				return fmt.Errorf("reader %d has no further page", i)
			}
		}
		return nil
	})
}

// finish ends the load and checks everything.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.group.Wait()
	if err := l.failed(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := bounded(t)
	defer cancel()
	final := l.p.settled(t)
	have := make(map[string]model.Stream, len(final.Items))
	for _, r := range final.Items {
		have[r.Stream] = r
	}
	for _, w := range l.writers {
		if err := w.check(have); err != nil {
			t.Error(err)
		}
	}
	for n := range have {
		t.Errorf("stream %s is there, and nobody wrote it", n)
	}
	list, err := l.p.client(l.p.operator).Nodes(ctx, apiclient.NodeFilter{})
	must(t, err)
	if len(list) != len(l.nodes) {
		t.Errorf("%d nodes, want %d", len(list), len(l.nodes))
	}
	for _, v := range list {
		if v.Node.Status.Lifecycle != model.Live || v.Node.Status.Incarnation != 0 {
			t.Errorf("%s is %s, incarnation %d", v.Node.NodeID, v.Node.Status.Lifecycle, v.Node.Status.Incarnation)
		}
	}
	var changes int64
	behind := 0
	for _, f := range l.followers {
		changes += f.changes.Load()
		behind += f.behind
	}
	t.Logf("%s; %d heartbeats; %d changes in the feed, %d read in all, %d answers of an instance that was behind",
		&l.tally, l.beats.Load(), final.NextSeq, changes, behind)
}

// settled is the snapshot of streams when all instances give the same one.
func (p *plane) settled(t *testing.T) model.Snapshot[model.Stream] {
	t.Helper()
	var final model.Snapshot[model.Stream]
	eventually(t, "the same streams everywhere", func() error {
		ctx, cancel := bounded(t)
		defer cancel()
		for n, url := range p.urls {
			s, err := newClient(t, url, p.operator).StreamsSnapshot(ctx)
			if err != nil {
				return err
			}
			if n == 0 {
				final = s
			} else if got, want := asJSON(s), asJSON(final); got != want {
				return fmt.Errorf("instance %d has %d streams at %d, the first %d at %d", n+1, len(s.Items), s.NextSeq, len(final.Items), final.NextSeq)
			}
		}
		return nil
	})
	return final
}

// patientNodes are settings with which no node of a load can expire for the
// sake of a slow machine.
var patientNodes = []string{"--node-liveness-expiry-timeout-ms", "40000", "--node-liveness-heartbeat-interval-ms", "1000"}
