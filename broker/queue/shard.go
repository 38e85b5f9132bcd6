package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

// A shard is the groups of one shard of a stream, over the two logs of it.
type shard struct {
	store   *Store
	src     Source
	owner   keyed.Owner
	marks   keyed.Part[*kvlog.Map] // positions and counts of attempts
	letters keyed.Part[*kvlog.Map] // dead letters
	appends appendWatch
	// work is goroutines on behalf of groups.
	work sync.WaitGroup
	// gone is closed when the shard ends, closed when it has let go of its
	// logs.
	gone, closed chan struct{}

	mu     sync.RWMutex
	groups map[string]*group
	ended  error
}

// newShard makes a shard that opens nothing yet; before had its logs.
func newShard(s *Store, src Source, before *shard) *shard {
	sh := &shard{
		store: s, src: src, groups: make(map[string]*group),
		gone: make(chan struct{}), closed: make(chan struct{}),
	}
	sh.appends.src = src
	name := src.Name()
	sh.owner = keyed.Owner{
		Key:         storage.Key{Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, Shard: src.Index()},
		UID:         src.UID(),
		After:       after(before),
		Removed:     errLogClosed,
		Unavailable: sh.unavailable,
		Logger:      s.cfg.Logger.With("stream", name.String(), "shard", src.Index()),
	}
	sh.marks.Init(s.parts, &sh.owner, storage.Groups, kvlog.Open, nil)
	sh.letters.Init(s.parts, &sh.owner, storage.DeadLetters, kvlog.Open, nil)
	return sh
}

// after is closed when before has let go of its logs.
func after(before *shard) <-chan struct{} {
	if before != nil {
		return before.closed
	}
	now := make(chan struct{})
	close(now)
	return now
}

// errLogClosed is for what comes after the shard's end.
var errLogClosed = errors.New("groups of the shard are closed")

func (sh *shard) unavailable(r Reason, err error) error {
	name := fmt.Sprintf("%s/%d", sh.src.Name(), sh.src.Index())
	return &UnavailableError{Shard: name, Reason: r, Err: err}
}

// ready waits for the log of the stream and those of the groups.
func (sh *shard) ready(ctx context.Context) error {
	if err := sh.src.Ready(ctx); err != nil {
		return err
	}
	sh.letters.Start() // both at once
	if err := sh.marks.Ready(ctx); err != nil {
		return sh.outcome(err)
	}
	return sh.outcome(sh.letters.Ready(ctx))
}

// cause is why the shard ended; nil before.
func (sh *shard) cause() error {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.ended
}

// outcome tells why the shard ended for what its logs say then.
func (sh *shard) outcome(err error) error {
	if errors.Is(err, errLogClosed) || errors.Is(err, shardlog.ErrClosed) || errors.Is(err, kvlog.ErrClosed) {
		if cause := sh.cause(); cause != nil {
			return cause
		}
	}
	return err
}

// find is a group that is built, held for the caller; nil without one.
func (sh *shard) find(name string) *group {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	g := sh.groups[name]
	if g == nil || !g.isBuilt() {
		return nil
	}
	g.users.Add(1)
	return g
}

// open is the group of a name, which is built in the background where it is
// not in memory. The shard's logs are open.
func (sh *shard) open(name string) (*group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	sh.mu.RLock()
	g := sh.groups[name]
	sh.mu.RUnlock()
	if g != nil {
		return g, nil
	}
	if err := sh.store.admit(); err != nil {
		return nil, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if g := sh.groups[name]; g != nil || sh.ended != nil {
		sh.store.groups.Add(-1)
		return g, sh.ended
	}
	g = newGroup(sh, name)
	sh.groups[name] = g
	sh.work.Go(g.build)
	return g, nil
}

// drop forgets a group.
func (sh *shard) drop(g *group) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.dropLocked(g)
}

// dropLocked is drop with mu held.
func (sh *shard) dropLocked(g *group) {
	if sh.groups[g.name] == g {
		delete(sh.groups, g.name)
		sh.store.groups.Add(-1)
	}
}

// all lists the groups.
func (sh *shard) all() []*group {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return slices.Collect(maps.Values(sh.groups))
}

// end ends the groups and closes the logs.
func (sh *shard) end(cause error) {
	sh.mu.Lock()
	if sh.ended != nil {
		sh.mu.Unlock()
		<-sh.closed
		return
	}
	sh.ended = cause
	close(sh.gone)
	sh.mu.Unlock()
	for _, g := range sh.all() {
		g.end(cause)
	}
	sh.marks.End()
	sh.letters.End()
	// Nobody is left to tell: what was not committed is answered with the
	// cause, and the next opening repairs.
	_ = sh.marks.Close()
	_ = sh.letters.Close()
	sh.work.Wait()
	for _, g := range sh.all() {
		sh.drop(g)
	}
	close(sh.closed)
}
