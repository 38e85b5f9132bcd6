package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// reopenAfter is how long a log that could not be opened, for a reason that
// may pass, is left alone.
const reopenAfter = time.Second

// A durable is what lies under a shard of a durable stream.
type durable struct {
	shard *Shard
	turns turns
	state projection

	// started says that somebody opens the log for the first time; tried is
	// closed when that is over.
	started atomic.Bool
	tried   chan struct{}
	current atomic.Pointer[openedLog]

	// opening is held by who opens or closes the log.
	opening sync.Mutex

	// visible is the offset after the last record that is delivered, at most
	// the tail; the shard's lock guards it.
	visible uint64
}

// An openedLog is how opening went: with a log, or why without.
type openedLog struct {
	log     *shardlog.Log
	refused error // *UnavailableError
	// heals says that opening may succeed later, and at when it was tried.
	heals bool
	at    time.Time
}

func newDurable(sh *Shard) *durable {
	d := &durable{shard: sh, tried: make(chan struct{})}
	d.state.init()
	return d
}

// opened is how opening went; nil before. What was refused for a reason that
// may have passed is tried again in the background: whoever asks is refused
// once more, and those who come later find the log.
func (d *durable) opened() *openedLog {
	o := d.current.Load()
	if o != nil && o.heals && d.shard.hub.clock.Now().Sub(o.at) >= reopenAfter && d.opening.TryLock() {
		if !d.shard.hub.opener.run(func() {
			defer d.opening.Unlock()
			d.try(false)
		}) {
			d.opening.Unlock()
		}
	}
	return o
}

// open opens the shard's log for the first time, or records why there is none,
// and lets those who wait for it go on. It returns when that is done, by
// whomever.
func (d *durable) open(background bool) {
	if !d.started.CompareAndSwap(false, true) {
		<-d.tried
		return
	}
	d.awaitBefore()
	d.opening.Lock()
	d.try(background)
	d.opening.Unlock()
	close(d.tried)
	d.turns.goOn()
}

// awaitBefore waits until whoever had the shard's logs before has let go.
func (d *durable) awaitBefore() {
	if before := d.shard.before; before != nil {
		<-before
	}
}

// try opens the log; opening is held.
func (d *durable) try(background bool) {
	sh := d.shard
	o := &openedLog{at: sh.hub.clock.Now()}
	if end := sh.Err(); end != nil {
		o.refused = sh.unavailable(Closed, end)
	} else if log, err := sh.openLog(background); err != nil {
		o.refused, o.heals = sh.unavailable(Failed, err), heals(err)
	} else {
		o.log = log
	}
	d.current.Store(o)
}

// heals says that opening a log again may end otherwise without anybody's
// doing: what is damaged stays damaged, a full disk may have room, and data of
// another uid may have been removed.
func heals(err error) bool {
	var damaged *segment.CorruptionError
	var foreign *storage.MismatchError
	return !errors.As(err, &damaged) && !errors.As(err, &foreign)
}

// hurry has the log opened ahead of those nobody waits for.
func (d *durable) hurry() {
	if !d.started.Load() {
		d.shard.hub.opener.run(func() { d.open(false) })
	}
}

// closeLog closes the log once it is open. Nobody appends any more.
func (d *durable) closeLog() {
	<-d.tried
	d.opening.Lock()
	defer d.opening.Unlock()
	if log := d.current.Load().log; log != nil {
		// What could not be written was answered to whom it concerned.
		_ = log.Close()
	}
	d.shard.stream.retention.leave(d.shard)
	d.turns.flush()
}

// openLog opens the log and takes over what it holds.
func (sh *Shard) openLog(background bool) (*shardlog.Log, error) {
	s := sh.stream
	r := s.retention.get()
	log, err := sh.hub.cfg.Logs.OpenLog(context.Background(), s.name, sh.index, LogOptions{
		Retention: sh.hub.retention(r), UID: s.opts.UID, AfterRound: sh.durable.turns.flush, Background: background,
	})
	if err != nil {
		return nil, err
	}
	sh.adopt(log)
	if err := s.retention.join(sh, log, r); err != nil {
		_ = log.Close() // the error at hand is the one to tell
		return nil, err
	}
	return log, nil
}
