package api

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// How long a reader may wait, how often its feed is read for it meanwhile, and
// how many may wait for one feed; more are answered at once (control plane 5.4).
const (
	maxWait     = 25 * time.Second
	reread      = 50 * time.Millisecond
	gather      = 5 * time.Millisecond // after news, so that a burst of writes makes few pages
	rereadLimit = 5 * time.Second      // of one read
	maxWaiters  = 8192
)

// A watch lets readers of one feed wait for its next change. One poller reads
// for all of them, and runs while there are any. It holds nothing of the store
// between reads.
type watch[C model.Sequenced] struct {
	read func(ctx context.Context, since uint64) (model.Page[C], error)
	// catchUp is the store's.
	catchUp func(ctx context.Context) error
	// changed is the store's own signal, nil for none.
	changed func() <-chan struct{}
	pollers *pollers

	mu      sync.Mutex
	waiters int
	next    chan struct{} // closed at the next news
	news    *news[C]      // that closed the channel before
	kicked  chan struct{} // wakes the poller, holds one
	stop    context.CancelFunc
}

// news is a page that has something to say to those who read since.
type news[C model.Sequenced] struct {
	since uint64
	page  model.Page[C]
}

func newWatch[C model.Sequenced](
	a *API, catchUp func(context.Context) error, read func(context.Context, uint64) (model.Page[C], error), changed func() <-chan struct{},
) *watch[C] {
	return &watch[C]{
		read: read, catchUp: catchUp, changed: changed, pollers: &a.pollers,
		next: make(chan struct{}), kicked: make(chan struct{}, 1),
	}
}

// kick makes the poller read now, after a write of this instance.
func (w *watch[C]) kick() {
	select {
	case w.kicked <- struct{}{}:
	default:
	}
}

// page reads the feed since; if that is nothing new it waits for news, up to
// wait, the end of ctx or the drain, and then answers what there is.
func (w *watch[C]) page(ctx context.Context, since uint64, wait time.Duration) (model.Page[C], error) {
	if wait <= 0 {
		return w.current(ctx, since)
	}
	// Taken before the read, so that a write in between is not missed.
	next, ok := w.enter()
	if !ok {
		return w.current(ctx, since)
	}
	defer w.leave()
	deadline := time.NewTimer(min(wait, maxWait))
	defer deadline.Stop()
	page, err := w.current(ctx, since)
	for err == nil && nothingNew(page, since) {
		w.poll(since)
		select {
		case <-next:
		case <-deadline.C:
			return page, nil
		case <-w.pollers.drain:
			return page, nil
		case <-ctx.Done():
			return page, nil
		}
		var latest *news[C]
		if latest, next = w.latest(); latest.since == since {
			return latest.page, nil
		}
		page, err = w.read(ctx, since)
	}
	return page, err
}

// current reads the feed since. A head before that is of another log, which
// makes the reader start anew, or of an instance that is behind the one that he
// read from: then he would go back in time.
func (w *watch[C]) current(ctx context.Context, since uint64) (model.Page[C], error) {
	page, err := w.read(ctx, since)
	if err != nil || page.NextSeq >= since {
		return page, err
	}
	if err := w.catchUp(ctx); err != nil {
		return model.Page[C]{}, err
	}
	return w.read(ctx, since)
}

func nothingNew[C model.Sequenced](p model.Page[C], since uint64) bool {
	verdict, _, _ := model.Judge(p, since)
	return verdict == model.Nothing
}

func (w *watch[C]) enter() (next <-chan struct{}, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters >= maxWaiters {
		return nil, false
	}
	w.waiters++
	return w.next, true
}

func (w *watch[C]) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
	if w.waiters == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *watch[C]) latest() (*news[C], <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.news, w.next
}

// poll starts the poller at the head that a waiter found, unless it runs.
func (w *watch[C]) poll(head uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.pollers.start(func() { w.run(ctx, head) })
}

// run reads the feed at its head until ctx ends.
func (w *watch[C]) run(ctx context.Context, head uint64) {
	tick := time.NewTicker(reread)
	defer tick.Stop()
	for {
		var changed <-chan struct{}
		if w.changed != nil {
			changed = w.changed()
		}
		// A store that fails is asked again: the waiters have their deadlines.
		if page, err := w.readOnce(ctx, head); err == nil && !nothingNew(page, head) {
			w.tell(news[C]{head, page})
			head = page.NextSeq
			if !pause(ctx, gather) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-w.kicked:
		case <-tick.C:
		}
	}
}

func (w *watch[C]) readOnce(ctx context.Context, since uint64) (model.Page[C], error) {
	ctx, cancel := context.WithTimeout(ctx, rereadLimit)
	defer cancel()
	return w.read(ctx, since)
}

func (w *watch[C]) tell(n news[C]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = &n
	close(w.next)
	w.next = make(chan struct{})
}

// pause waits, and says whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// pollers are those of all feeds.
type pollers struct {
	drain chan struct{} // closed by stop

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// start runs a poller, unless there are to be no more.
func (p *pollers) start(run func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.running.Go(run)
	}
}

// stop ends all waiting, which ends the pollers.
func (p *pollers) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		close(p.drain)
	}
}
