package stream

import (
	"context"
	"sync"
	"sync/atomic"
)

// backgroundOpens is how many logs nobody waits for are opened at once, and
// how many shards of one stream are closed at once.
const backgroundOpens = 8

// An opener opens and closes the logs of shards in the background, one after
// the other for shards of the same name.
type opener struct {
	wait  sync.WaitGroup
	slots chan struct{}

	mu      sync.Mutex
	stopped bool
	// closing is, by name, when the shard that had it last has let go of its
	// logs.
	closing map[shardName]chan struct{}
}

type shardName struct {
	stream Name
	index  uint32
}

func (sh *Shard) fullName() shardName { return shardName{sh.stream.name, sh.index} }

func (o *opener) init() {
	o.slots = make(chan struct{}, backgroundOpens)
	o.closing = make(map[shardName]chan struct{})
}

// run runs f in the background, unless no more is to be started.
func (o *opener) run(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.wait.Go(f)
	return true
}

// finish waits for what runs; nothing more is started.
func (o *opener) finish() {
	o.mu.Lock()
	o.stopped = true
	o.mu.Unlock()
	o.wait.Wait()
}

// start opens the logs of shards that nobody has seen yet.
func (o *opener) start(shards []*Shard) {
	o.mu.Lock()
	for _, sh := range shards {
		sh.before = o.closing[sh.fullName()]
	}
	o.mu.Unlock()
	o.wait.Go(func() {
		each(shards, func(sh *Shard) {
			// Before the slot: who closes may wait for an opening that needs one.
			sh.durable.awaitBefore()
			o.slots <- struct{}{}
			defer func() { <-o.slots }()
			sh.durable.open(true)
		})
	})
}

// stop closes the logs of shards that have ended.
func (o *opener) stop(shards []*Shard, cause error) {
	o.mu.Lock()
	for _, sh := range shards {
		o.closing[sh.fullName()] = sh.gone
	}
	o.mu.Unlock()
	o.wait.Go(func() {
		each(shards, func(sh *Shard) {
			if release := sh.hub.cfg.Release; release != nil {
				release(sh, cause)
			}
			sh.durable.closeLog()
			o.mu.Lock()
			if name := sh.fullName(); o.closing[name] == sh.gone {
				delete(o.closing, name)
			}
			o.mu.Unlock()
			close(sh.gone)
		})
	})
}

// letGo waits until the shards of a stream that have ended have let go of
// their logs.
func (o *opener) letGo(ctx context.Context, name Name) error {
	o.mu.Lock()
	var gone []chan struct{}
	for shard, closing := range o.closing {
		if shard.stream == name {
			gone = append(gone, closing)
		}
	}
	o.mu.Unlock()
	for _, closing := range gone {
		select {
		case <-closing:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// each calls f for every shard, a few at a time.
func each(shards []*Shard, f func(*Shard)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(backgroundOpens, len(shards)) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(shards) {
					return
				}
				f(shards[i])
			}
		})
	}
	wait.Wait()
}
