package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// reopenAfter is how long a log that could not be opened is left alone before
// a request may have it tried again.
const reopenAfter = time.Second

// An index is what makes a cache or counters of a log.
type index interface {
	*kvlog.Map | *kvlog.Counters
	Close()
}

// A part of a shard is one of its logs with the index over it. It is opened in
// the background, used through an atomic pointer, and closed once.
type part[T index] struct {
	shard *logShard
	space storage.Space
	build func(kvlog.Log, kvlog.Options) (T, error)
	// opened is called when the part can be used, with mu held.
	opened func(T)

	open  atomic.Pointer[openPart[T]]
	round flushRound

	mu      sync.Mutex
	opening *opening // the last one, nil before the first
	ended   bool
}

type openPart[T index] struct {
	log   *shardlog.Log
	index T
}

// An opening is one try to open a part.
type opening struct {
	done  chan struct{} // closed at the end
	hurry context.CancelFunc
	// err and at, valid when done is closed, are why and when it failed.
	err error
	at  time.Time
}

// use is the part for one request. Without one it says why, and starts what
// makes the next request succeed.
func (p *part[T]) use() (*openPart[T], error) {
	if open := p.open.Load(); open != nil {
		return open, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := p.begin()
	if err != nil {
		return nil, err
	}
	select {
	case <-o.done:
		if open := p.open.Load(); open != nil {
			return open, nil
		}
		return nil, o.err
	default:
		o.hurry()
		return nil, p.shard.unavailable(Opening, nil)
	}
}

// ready waits until the part can be used.
func (p *part[T]) ready(ctx context.Context) error {
	if p.open.Load() != nil {
		return nil
	}
	p.mu.Lock()
	o, err := p.begin()
	p.mu.Unlock()
	if err != nil {
		return err
	}
	o.hurry()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start opens the part in the background.
func (p *part[T]) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.begin() // a part that cannot be opened says so when it is used
}

// begin is the opening to wait for: the one that runs or succeeded, or a new
// one when there was none or the last failed for a reason that may have gone.
// mu is held.
func (p *part[T]) begin() (*opening, error) {
	if p.ended {
		return nil, ErrRemoved
	}
	store := p.shard.cache.store
	if store.cfg.Storage == nil {
		return nil, p.shard.unavailable(NoStorage, nil)
	}
	if o := p.opening; o != nil && !o.again(store.clock) {
		return o, nil
	}
	waiting, hurry := context.WithCancel(context.Background())
	o := &opening{done: make(chan struct{}), hurry: hurry}
	p.opening = o
	p.shard.cache.openings.Add(1)
	go func() {
		defer p.shard.cache.openings.Done()
		p.run(o, waiting)
	}()
	return o, nil
}

// again says that a failed opening is worth another try. What is damaged on
// disk stays damaged.
func (o *opening) again(clock Clock) bool {
	select {
	case <-o.done:
	default:
		return false
	}
	var damaged *segment.CorruptionError
	var undecodable *kvlog.CorruptionError
	var foreign *storage.MismatchError
	return o.err != nil && !errors.As(o.err, &damaged) && !errors.As(o.err, &undecodable) &&
		!errors.As(o.err, &foreign) && clock.Now().Sub(o.at) >= reopenAfter
}

// run opens log and index; waiting ends when somebody wants the part.
func (p *part[T]) run(o *opening, waiting context.Context) {
	defer o.hurry()
	<-p.shard.cache.after
	log, index, err := p.load(waiting)
	store := p.shard.cache.store
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(o.done)
	switch {
	case err != nil:
		o.err, o.at = p.shard.unavailable(Failed, err), store.clock.Now()
	case p.ended:
		o.err = ErrRemoved
		index.Close()
		_ = log.Close() // nothing was written
	default:
		p.open.Store(&openPart[T]{log: log, index: index})
		p.opened(index)
	}
}

func (p *part[T]) load(waiting context.Context) (*shardlog.Log, T, error) {
	store := p.shard.cache.store
	options := storage.LogOptions{AfterRound: p.round.over, Background: true}
	key := p.shard.key()
	log, err := store.cfg.Storage.OpenLog(waiting, p.space, key, options)
	if err != nil && waiting.Err() != nil {
		options.Background = false
		log, err = store.cfg.Storage.OpenLog(context.Background(), p.space, key, options)
	}
	if err != nil {
		return nil, nil, err
	}
	// Reading the whole log of many shards at once would help none of them.
	store.loading <- struct{}{}
	defer func() { <-store.loading }()
	index, err := p.build(log, store.indexOptions(p.shard, log))
	if err != nil {
		_ = log.Close() // the first error is the one to tell
		return nil, nil, err
	}
	return log, index, nil
}

// end refuses new openings, and lets go of the part once those that run are
// over.
func (p *part[T]) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.opening != nil {
		p.opening.hurry()
	}
}

// close closes what is open. All openings are over.
func (p *part[T]) close() error {
	open := p.open.Load()
	if open == nil {
		return nil
	}
	open.index.Close()
	err := open.log.Close()
	p.round.over()
	return err
}
