package stream

import (
	"sync"
	"sync/atomic"
)

// backgroundOpens is how many logs nobody waits for are opened at once, and
// how many shards of one stream are closed at once.
const backgroundOpens = 8

// An opener opens and closes the logs of streams in the background, one after
// the other for streams of the same name.
type opener struct {
	wait  sync.WaitGroup
	slots chan struct{}

	mu      sync.Mutex
	stopped bool
	// closing is, by name, when the stream that had it last has let go of its
	// logs.
	closing map[Name]chan struct{}
}

func (o *opener) init() {
	o.slots = make(chan struct{}, backgroundOpens)
	o.closing = make(map[Name]chan struct{})
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

// start opens the logs of s, which nobody has seen yet.
func (o *opener) start(s *Stream) {
	o.mu.Lock()
	s.before = o.closing[s.name]
	o.mu.Unlock()
	o.wait.Go(func() {
		if s.before != nil {
			<-s.before
		}
		s.each(func(d *durable) {
			o.slots <- struct{}{}
			defer func() { <-o.slots }()
			d.open(true)
		})
	})
}

// stop closes the logs of s, which has ended.
func (o *opener) stop(s *Stream) {
	closed := make(chan struct{})
	o.mu.Lock()
	o.closing[s.name] = closed
	o.mu.Unlock()
	o.wait.Go(func() {
		s.each((*durable).closeLog)
		o.mu.Lock()
		if o.closing[s.name] == closed {
			delete(o.closing, s.name)
		}
		o.mu.Unlock()
		close(closed)
	})
}

// each calls f for every shard, a few at a time.
func (s *Stream) each(f func(*durable)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(backgroundOpens, len(s.shards)) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(s.shards) {
					return
				}
				f(s.shards[i].durable)
			}
		})
	}
	wait.Wait()
}
