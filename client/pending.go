package client

import (
	"context"
	"sync"
)

// A Pending is the future answer to one batch that a [Publisher] sent.
type Pending struct {
	mu       sync.Mutex
	resolved bool
	ack      Ack
	err      error
	done     chan struct{} // made by the first to wait
}

func (p *Pending) resolve(ack Ack, err error) {
	p.mu.Lock()
	p.resolved, p.ack, p.err = true, ack, err
	if p.done != nil {
		close(p.done)
	}
	p.mu.Unlock()
}

// Done is closed when the answer is there; Wait then returns at once.
func (p *Pending) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.resolved {
			close(p.done)
		}
	}
	return p.done
}

// Wait waits for the answer. When ctx ends first it returns ctx's error: the
// batch is still under way and Wait may be called again.
func (p *Pending) Wait(ctx context.Context) (Ack, error) {
	if ack, err, ok := p.result(); ok {
		return ack, err
	}
	select {
	case <-p.Done():
		ack, err, _ := p.result()
		return ack, err
	case <-ctx.Done():
		return Ack{}, ctx.Err()
	}
}

func (p *Pending) result() (Ack, error, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ack, p.err, p.resolved
}
