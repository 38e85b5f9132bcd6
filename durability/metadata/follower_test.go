package metadata

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// A follower keeps a copy of all streams by their feed, by stricter rules than a
// broker's: each sequence comes once, in order, and fits what is there.
type follower struct {
	api     *apiclient.Client
	records map[model.StreamKey]model.Stream
	next    uint64
	// mayMiss allows it to be too far behind: it takes a snapshot then.
	mayMiss bool

	changes   atomic.Int64 // applied
	pages     atomic.Int64 // answers to long-polls
	snapshots int          // taken
	behind    int          // answers of instances that were behind another
}

func (f *follower) snapshot(ctx context.Context) error {
	for {
		s, err := f.api.StreamsSnapshot(ctx)
		if err != nil {
			return err
		}
		if s.NextSeq < f.next { // of an instance that is behind
			f.behind++
			if err := sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		f.snapshots++
		f.records, f.next = make(map[model.StreamKey]model.Stream, len(s.Items)), s.NextSeq
		for _, r := range s.Items {
			f.records[r.Key()] = r
		}
		return nil
	}
}

// follow makes one long-poll and applies its answer, as far as until.
func (f *follower) follow(ctx context.Context, wait time.Duration, until uint64) error {
	p, err := f.api.StreamChanges(ctx, f.next, wait)
	if err != nil {
		return err
	}
	f.pages.Add(1)
	if p.NextSeq < f.next {
		f.behind++
		return sleep(ctx, 10*time.Millisecond)
	}
	if v, _, _ := model.Judge(p, f.next); v == model.Resnapshot {
		if f.mayMiss {
			return f.snapshot(ctx)
		}
		return fmt.Errorf("the changes from %d on are gone, the page goes to %d", f.next, p.NextSeq)
	}
	if len(p.Items) == 0 && wait > 0 {
		// An instance that is about to end answers at once.
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	for _, c := range p.Items {
		if f.next >= until {
			return nil
		}
		if c.Seq != f.next {
			return fmt.Errorf("sequence %d where %d belongs", c.Seq, f.next)
		}
		if err := f.apply(c); err != nil {
			return fmt.Errorf("sequence %d: %w", c.Seq, err)
		}
		f.next++
		f.changes.Add(1)
	}
	return nil
}

func (f *follower) apply(c model.StreamChange) error {
	old, there := f.records[c.Key]
	switch c.Op {
	case model.Created:
		if there || c.Stream == nil || c.Stream.Key() != c.Key {
			return fmt.Errorf("%s of %v, which is there: %t", c.Op, c.Key, there)
		}
	case model.Updated:
		if !there || c.Stream == nil || c.Stream.UID != old.UID {
			return fmt.Errorf("%s of %v, which is there: %t", c.Op, c.Key, there)
		}
	case model.Deleted:
		if !there || c.Stream != nil || c.Tombstone == nil || c.Tombstone.UID != old.UID {
			return fmt.Errorf("%s of %v, which is there: %t, with tombstone %+v", c.Op, c.Key, there, c.Tombstone)
		}
		delete(f.records, c.Key)
		return nil
	default:
		return fmt.Errorf("%q of %v", c.Op, c.Key)
	}
	f.records[c.Key] = *c.Stream
	return nil
}

// run follows until stop is closed, and then once more to the end, where the
// copy must be the snapshot.
func (f *follower) run(ctx context.Context, stop <-chan struct{}) error {
	if err := f.snapshot(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-stop:
			return f.finish(ctx)
		default:
		}
		if err := f.follow(ctx, 500*time.Millisecond, ^uint64(0)); err != nil {
			return err
		}
	}
}

// wander is run for a reader that goes to sleep now and then, and takes a
// snapshot when it is told to.
func (f *follower) wander(ctx context.Context, rng *rand.Rand, snap <-chan struct{}, stop <-chan struct{}) error {
	if err := f.snapshot(ctx); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-stop:
			return f.finish(ctx)
		case <-snap:
			err = f.snapshot(ctx)
		default:
			err = f.follow(ctx, 500*time.Millisecond, ^uint64(0))
		}
		if err == nil && rng.IntN(20) == 0 {
			err = sleep(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
}

// finish reads on to a snapshot and compares.
func (f *follower) finish(ctx context.Context) error {
	var s model.Snapshot[model.Stream]
	for {
		var err error
		if s, err = f.api.StreamsSnapshot(ctx); err != nil {
			return err
		}
		if s.NextSeq >= f.next {
			break
		}
		f.behind++
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	for f.next < s.NextSeq {
		if err := f.follow(ctx, 0, s.NextSeq); err != nil {
			return err
		}
	}
	return f.differs(s)
}

// differs says how the copy differs from a snapshot.
func (f *follower) differs(s model.Snapshot[model.Stream]) error {
	if f.next != s.NextSeq {
		return fmt.Errorf("the copy is at %d, the snapshot at %d", f.next, s.NextSeq)
	}
	want := make(map[model.StreamKey]model.Stream, len(s.Items))
	for _, r := range s.Items {
		want[r.Key()] = r
	}
	if len(want) != len(f.records) {
		return fmt.Errorf("the copy has %d records at %d, the snapshot %d", len(f.records), f.next, len(want))
	}
	for k := range maps.Keys(want) {
		if got, want := asJSON(f.records[k]), asJSON(want[k]); got != want {
			return fmt.Errorf("the copy has %s at %d, the snapshot %s", got, f.next, want)
		}
	}
	return nil
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
