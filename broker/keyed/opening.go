package keyed

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// An opening is one try to open a part.
type opening struct {
	done  chan struct{} // closed at the end
	hurry context.CancelFunc
	// err and at, valid when done is closed, are why and when it failed.
	err error
	at  time.Time
}

// begin is the opening to wait for: the one that runs or succeeded, or a new
// one when there was none or the last failed for a reason that may have gone.
// mu is held.
func (p *Part[T]) begin() (*opening, error) {
	if p.ended {
		return nil, p.owner.Removed
	}
	if p.shared.storage == nil {
		return nil, p.owner.Unavailable(NoStorage, nil)
	}
	if o := p.opening; o != nil && !o.again(p.shared.clock) {
		return o, nil
	}
	waiting, hurry := context.WithCancel(context.Background())
	o := &opening{done: make(chan struct{}), hurry: hurry}
	p.opening = o
	p.openings.Go(func() { p.run(o, waiting) })
	return o, nil
}

// again says that a failed opening is worth another try. What is damaged on
// disk stays damaged.
func (o *opening) again(clock *steady.Clock) bool {
	select {
	case <-o.done:
	default:
		return false
	}
	var damaged *segment.CorruptionError
	var undecodable *kvlog.CorruptionError
	var foreign *storage.MismatchError
	return o.err != nil && !errors.As(o.err, &damaged) && !errors.As(o.err, &undecodable) &&
		!errors.As(o.err, &foreign) && clock.Now().Sub(o.at) >= ReopenAfter
}

// run opens log and index; waiting ends when somebody wants the part.
func (p *Part[T]) run(o *opening, waiting context.Context) {
	defer o.hurry()
	<-p.owner.After
	log, index, err := p.load(waiting)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(o.done)
	switch {
	case err != nil:
		o.err, o.at = p.owner.Unavailable(Failed, err), p.shared.clock.Now()
	case p.ended:
		o.err = p.owner.Removed
		index.Close()
		_ = log.Close() // nothing was written
	default:
		if p.opened != nil {
			p.opened(index)
		}
		p.open.Store(&Open[T]{Log: log, Index: index})
	}
}

func (p *Part[T]) load(waiting context.Context) (*shardlog.Log, T, error) {
	options := storage.LogOptions{UID: p.owner.UID, AfterRound: p.Round.Over, Background: true}
	log, err := p.shared.storage.OpenLog(waiting, p.space, p.owner.Key, options)
	if err != nil && waiting.Err() != nil {
		options.Background = false
		log, err = p.shared.storage.OpenLog(context.Background(), p.space, p.owner.Key, options)
	}
	if err != nil {
		return nil, nil, err
	}
	// Reading the whole log of many shards at once would help none of them.
	p.shared.loading <- struct{}{}
	defer func() { <-p.shared.loading }()
	index, err := p.build(log, kvlog.Options{
		Dir: log.Dir(), FS: p.shared.storage.FS(), Clock: p.shared.clock, Pacer: p.shared.pacer, Logger: p.owner.Logger,
	})
	if err != nil {
		_ = log.Close() // the first error is the one to tell
		return nil, nil, err
	}
	return log, index, nil
}
