package raft

import (
	"context"
	"sync"
)

// A progress is an index that only grows, for many to wait on.
type progress struct {
	mu      sync.Mutex
	index   uint64
	changed chan struct{} // closed at the next change; nil while nobody waits
}

func (p *progress) load() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index
}

func (p *progress) advance(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if index <= p.index {
		return
	}
	p.index = index
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// wait returns when the index is there, or the error of ctx.
func (p *progress) wait(ctx context.Context, index uint64) error {
	for {
		p.mu.Lock()
		if p.index >= index {
			p.mu.Unlock()
			return nil
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
