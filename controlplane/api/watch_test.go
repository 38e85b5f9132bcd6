package api

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// A log is a feed in memory that counts how often it is read.
type log struct {
	mu      sync.Mutex
	head    uint64
	reads   int
	fails   bool
	changed chan struct{}

	behind  uint64 // what other instances have and this one lacks
	catches int    // up
	cut     bool   // off from the others
}

func newLog() *log { return &log{changed: make(chan struct{})} }

func (l *log) read(_ context.Context, since uint64) (model.Page[model.TenantChange], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.fails {
		return model.Page[model.TenantChange]{}, errors.New("the store is away")
	}
	p := model.Page[model.TenantChange]{Items: []model.TenantChange{}, NextSeq: l.head}
	for s := since; s < l.head; s++ {
		p.Items = append(p.Items, model.TenantChange{Seq: s})
	}
	return p, nil
}

func (l *log) catchUp(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catches++
	if l.cut {
		return errors.New("the others are away")
	}
	l.head, l.behind = l.head+l.behind, 0
	return nil
}

// write adds a change; told says whether this instance hears of it by itself.
func (l *log) write(told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head++
	if told {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *log) signal() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *log) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

type result struct {
	page  model.Page[model.TenantChange]
	err   error
	after time.Duration
}

func wait(w *watch[model.TenantChange], ctx context.Context, since uint64, d time.Duration) <-chan result {
	out := make(chan result, 1)
	began := time.Now()
	go func() {
		p, err := w.page(ctx, since, d)
		out <- result{p, err, time.Since(began)}
	}()
	return out
}

func testWatch(t *testing.T, test func(l *log, a *API, w *watch[model.TenantChange])) {
	synctest.Test(t, func(*testing.T) {
		l := newLog()
		a := &API{pollers: pollers{drain: make(chan struct{})}}
		test(l, a, newWatch(a, l.catchUp, l.read, l.signal))
		a.Close()
	})
}

// A thousand waiters cost one read every 50 ms and one each at the start.
func TestWaitersShareOnePoller(t *testing.T) {
	testWatch(t, func(l *log, _ *API, w *watch[model.TenantChange]) {
		const waiters = 1000
		var got []<-chan result
		for range waiters {
			got = append(got, wait(w, context.Background(), 0, 20*time.Second))
		}
		synctest.Wait()
		first := l.count()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if polls := l.count() - first; polls != 200 {
			t.Errorf("%d reads in 10 s, want 200", polls)
		}
		before := l.count()
		l.write(true)
		for _, g := range got {
			if r := <-g; r.err != nil || len(r.page.Items) != 1 || r.after != 10*time.Second {
				t.Fatalf("%+v", r)
			}
		}
		if reads := l.count() - before; reads > 3 {
			t.Errorf("%d reads to answer %d waiters of the same sequence", reads, waiters)
		}
		// Nobody waits: nobody reads.
		synctest.Wait()
		before = l.count()
		time.Sleep(time.Minute)
		if l.count() != before {
			t.Errorf("%d reads while nobody waits", l.count()-before)
		}
	})
}

// A write that this instance does not hear of is seen within 50 ms.
func TestWritesOfOthersAreSeen(t *testing.T) {
	testWatch(t, func(l *log, _ *API, w *watch[model.TenantChange]) {
		g := wait(w, context.Background(), 0, 20*time.Second)
		time.Sleep(1010 * time.Millisecond)
		l.write(false)
		if r := <-g; r.after > 1060*time.Millisecond || len(r.page.Items) != 1 {
			t.Errorf("seen after %v: %+v", r.after, r.page)
		}
	})
}

// Deadline, drain, a bound of the wait and the end of the reader.
func TestWaitEnds(t *testing.T) {
	testWatch(t, func(l *log, a *API, w *watch[model.TenantChange]) {
		if r := <-wait(w, context.Background(), 0, time.Hour); r.after != maxWait || len(r.page.Items) != 0 || r.err != nil {
			t.Errorf("a long wait: %+v", r)
		}
		if r := <-wait(w, context.Background(), 0, 0); r.after != 0 {
			t.Errorf("no wait: %+v", r)
		}
		for _, signal := range []uint64{7} { // a head before since: a reset
			if r := <-wait(w, context.Background(), signal, time.Hour); r.after != 0 || r.page.NextSeq != 0 {
				t.Errorf("a signal: %+v", r)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		g := wait(w, ctx, 0, 20*time.Second)
		synctest.Wait()
		cancel()
		<-g
		g = wait(w, context.Background(), 0, 20*time.Second)
		synctest.Wait()
		a.Drain()
		if r := <-g; r.after != 0 {
			t.Errorf("drained: %+v", r)
		}
		if r := <-wait(w, context.Background(), 0, 20*time.Second); r.after != 0 {
			t.Errorf("after the drain: %+v", r)
		}
	})
}

// Readers of different sequences each get what is theirs.
func TestReadersOfDifferentSequences(t *testing.T) {
	testWatch(t, func(l *log, _ *API, w *watch[model.TenantChange]) {
		var got []<-chan result
		for since := range uint64(5) {
			got = append(got, wait(w, context.Background(), since, 20*time.Second))
			synctest.Wait()
			l.write(false) // wakes the reader before, and is not news to the next
		}
		for since, g := range got {
			if r := <-g; len(r.page.Items) == 0 || r.page.Items[0].Seq != uint64(since) {
				t.Errorf("since %d: %+v", since, r.page)
			}
		}
	})
}

// A store that fails ends no wait early; a read of the reader's own that fails
// is an answer.
func TestWatchOverAFailingStore(t *testing.T) {
	testWatch(t, func(l *log, _ *API, w *watch[model.TenantChange]) {
		g := wait(w, context.Background(), 0, 10*time.Second)
		synctest.Wait()
		l.mu.Lock()
		l.fails = true
		l.mu.Unlock()
		if r := <-g; r.err != nil || r.after != 10*time.Second {
			t.Errorf("%+v", r)
		}
		if r := <-wait(w, context.Background(), 0, 10*time.Second); r.err == nil || r.after != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Waiters beyond the bound are answered at once.
func TestWaitersAreBounded(t *testing.T) {
	testWatch(t, func(l *log, a *API, w *watch[model.TenantChange]) {
		for range maxWaiters {
			wait(w, context.Background(), 0, 20*time.Second)
		}
		synctest.Wait()
		if r := <-wait(w, context.Background(), 0, 20*time.Second); r.after != 0 || r.err != nil {
			t.Errorf("%+v", r)
		}
	})
}

// A reader who was further at another instance is not told to start anew, and to
// go back in time, by one that is behind; one who comes from another log is.
func TestReaderFromAnotherInstance(t *testing.T) {
	testWatch(t, func(l *log, _ *API, w *watch[model.TenantChange]) {
		for _, patience := range []time.Duration{0, time.Second} {
			l.head, l.behind, l.catches, l.cut = 3, 2, 0, true
			if r := <-wait(w, context.Background(), 4, patience); r.err == nil {
				t.Errorf("cut off: %+v", r)
			}
			l.cut = false
			if r := <-wait(w, context.Background(), 4, patience); r.err != nil || len(r.page.Items) != 1 || r.page.NextSeq != 5 {
				t.Errorf("caught up: %+v", r)
			}
			if r := <-wait(w, context.Background(), 9, patience); r.err != nil || r.page.NextSeq != 5 || r.after != 0 {
				t.Errorf("another log: %+v", r)
			}
			before := l.catches
			if r := <-wait(w, context.Background(), 5, 0); r.err != nil || r.page.NextSeq != 5 || l.catches != before {
				t.Errorf("at the head: %+v, caught up %d times", r, l.catches-before)
			}
		}
	})
}
