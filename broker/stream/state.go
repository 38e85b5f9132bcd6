package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// A StateValue is one key of a shard's state (wire 13).
type StateValue struct {
	// Found says that the key has a value; Value may be empty.
	Found bool
	Value []byte
	// Version is the offset of the commit that wrote it.
	Version uint64
	// AsOf is the offset of the last commit the answer reflects; HasAsOf says
	// that there was one.
	AsOf    uint64
	HasAsOf bool
}

// A projection is the state of a shard: for every key the newest commit that
// wrote it, which is where the value is read from. It is built from the log
// when it is first asked for and follows the commits from then on. Commits
// below the log's base are no longer part of it.
type projection struct {
	// build has one place, for whoever builds.
	build     chan struct{}
	mu        sync.Mutex
	following bool
	next      uint64 // the first offset not looked at, while it does not follow
	keys      map[string]stateEntry
	asOf      uint64
	hasAsOf   bool
}

func (p *projection) init() { p.build = make(chan struct{}, 1) }

type stateEntry struct {
	offset uint64
	at     shardlog.Location
}

// State reads one key. It reflects every commit that was answered before.
// Errors: [*NeedsLogError], [*UnavailableError], why the shard serves no
// longer.
func (sh *Shard) State(ctx context.Context, key []byte) (StateValue, error) {
	log, err := sh.serving(ctx, "reading state")
	if err != nil {
		return StateValue{}, err
	}
	p := &sh.durable.state
	if err := p.ensure(ctx, sh, log); err != nil {
		return StateValue{}, err
	}
	p.mu.Lock()
	entry, found := p.keys[string(key)]
	v := StateValue{AsOf: p.asOf, HasAsOf: p.hasAsOf}
	p.mu.Unlock()
	if base := log.Base(); !found || entry.offset < base {
		if v.HasAsOf && v.AsOf < base {
			v.AsOf, v.HasAsOf = 0, false
		}
		return v, nil
	}
	page, err := log.ReadAt(entry.at)
	if err != nil {
		if entry.offset < log.Base() {
			return v, nil // trimmed meanwhile
		}
		return StateValue{}, sh.readError(entry.offset, err)
	}
	defer page.Release()
	v.Found, v.Version = true, entry.offset
	err = eachStateChange(page.Batches[0].Extra, func(c StateChange) {
		if string(c.Key) == string(key) {
			v.Value = append([]byte{}, c.Value...) // the last one counts
		}
	})
	if err != nil {
		return StateValue{}, sh.unavailable(Failed, fmt.Errorf("commit at offset %d: %w", entry.offset, err))
	}
	return v, nil
}

// ensure builds the projection unless it follows already.
func (p *projection) ensure(ctx context.Context, sh *Shard, log *shardlog.Log) error {
	p.mu.Lock()
	following := p.following
	p.mu.Unlock()
	if following {
		return nil
	}
	select {
	case p.build <- struct{}{}:
		defer func() { <-p.build }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]stateEntry)
	}
	for !p.following {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := p.scan(sh, log); err != nil {
			return err
		}
	}
	return nil
}

// scan takes in one page; mu is held, and let go of while it reads.
func (p *projection) scan(sh *Shard, log *shardlog.Log) error {
	p.next = max(p.next, log.Base())
	if log.Tail() <= p.next {
		p.following = true
		return nil
	}
	p.mu.Unlock()
	page, err := log.Read(p.next, sh.hub.cfg.PageBytes, 0)
	p.mu.Lock()
	if err != nil {
		if p.next < log.Base() {
			return nil // trimmed meanwhile: go on from there
		}
		return sh.readError(p.next, err)
	}
	defer page.Release()
	before := p.next
	for i := range page.Batches {
		b := &page.Batches[i]
		if b.Kind == segment.Commit && b.BaseOffset >= p.next {
			if err := p.put(b.BaseOffset, page.Where[i], b.Extra); err != nil {
				return sh.unavailable(Failed, fmt.Errorf("commit at offset %d: %w", b.BaseOffset, err))
			}
		}
	}
	p.next = max(p.next, page.Next)
	if p.next == before {
		return sh.unavailable(Failed, log.Err())
	}
	return nil
}

// put takes in one commit, unless it has; mu is held.
func (p *projection) put(offset uint64, at shardlog.Location, operations []byte) error {
	if p.hasAsOf && offset <= p.asOf {
		return nil
	}
	p.asOf, p.hasAsOf = offset, true
	return eachStateChange(operations, func(c StateChange) {
		if c.Delete {
			delete(p.keys, string(c.Key))
			return
		}
		p.keys[string(c.Key)] = stateEntry{offset: offset, at: at}
	})
}

// ApplyState takes a committed batch's operations into the shard's state. It
// is called before the batch is applied, in the order of the commits. While the
// projection is built it does nothing: the log's tail is past the batch by now,
// and building ends at the tail.
func (sh *Shard) ApplyState(a shardlog.Appended, operations []byte) {
	p := &sh.durable.state
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.following {
		// The operations were encoded by this process.
		_ = p.put(a.First, a.Where, operations)
	}
}
