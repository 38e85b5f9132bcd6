package metadata

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// A tally counts calls and how they went.
type tally struct {
	done        atomic.Int64 // acknowledged
	unavailable atomic.Int64 // answered with 503
	refused     atomic.Int64 // connections that were refused
	broken      atomic.Int64 // connections that ended without an answer
	repeats     atomic.Int64 // that found the work of an attempt that was not answered

	mu    sync.Mutex
	first []error // attempts that were not answered
}

func (t *tally) String() string {
	return fmt.Sprintf("%d writes done; attempts answered with 503: %d, refused: %d, not answered: %d; repeats that found it done: %d",
		t.done.Load(), t.unavailable.Load(), t.refused.Load(), t.broken.Load(), t.repeats.Load())
}

// silent are the first attempts that were not answered.
func (t *tally) silent() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.first...)
}

// A failure is how an attempt went wrong.
type failure int

const (
	fatal      failure = iota // an answer that nobody should get
	notReached                // nobody had the request
	unanswered                // it may have been carried out
)

// judge counts a failed attempt and says what it means.
func (t *tally) judge(err error) failure {
	if apiclient.StatusOf(err) == 503 {
		t.unavailable.Add(1)
		if apiclient.CodeOf(err) == apiclient.CodeCannotVerify {
			return notReached
		}
		return unanswered
	}
	var away *apiclient.UnreachableError
	if !errors.As(err, &away) {
		return fatal
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED) {
		t.refused.Add(1)
		return notReached
	}
	if t.broken.Add(1) <= 10 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.first = append(t.first, err)
	}
	return unanswered
}

// A write is a state of a stream: nil is that there is none. UID is empty where
// it is not known.
type write struct{ record *model.Stream }

// A name is what its one writer knows of it.
type name struct {
	acked, pending write
	unsure         bool // pending may have been done
}

// namesPerWriter is how many streams a writer has at once.
const namesPerWriter = 4

// A writer creates, changes and deletes streams of its own.
type writer struct {
	id  int
	api *apiclient.Client
	rng *rand.Rand
	// insists has it repeat what was not answered until it knows; otherwise it
	// leaves the name alone: a request may be carried out late, when it was long
	// repeated.
	insists bool
	tally   *tally

	names map[string]*name
	live  []string
}

func newWriter(id int, api *apiclient.Client, insists bool, t *tally) *writer {
	w := &writer{id: id, api: api, rng: rand.New(rand.NewPCG(1, uint64(id))), insists: insists, tally: t, names: make(map[string]*name)}
	for range namesPerWriter {
		w.fresh()
	}
	return w
}

func (w *writer) fresh() {
	n := fmt.Sprintf("w%d-s%d", w.id, len(w.names))
	w.names[n] = new(name)
	w.live = append(w.live, n)
}

// run writes until stop is closed or, where most is not 0, so many writes are
// done.
func (w *writer) run(ctx context.Context, stop <-chan struct{}, most int64) error {
	for n := uint64(1); most == 0 || w.tally.done.Load() < most; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := w.one(ctx, n); err != nil {
			return fmt.Errorf("writer %d: %w", w.id, err)
		}
	}
	return nil
}

// one makes one write of a name.
func (w *writer) one(ctx context.Context, n uint64) error {
	at := w.rng.IntN(len(w.live))
	s := w.names[w.live[at]]
	k := model.StreamKey{TenantID: inShop.TenantID, Namespace: inShop.Namespace, Stream: w.live[at]}
	var attempt func() (write, error)
	var finds string // the code of an answer that says that it was done before
	switch {
	case s.acked.record == nil:
		s.pending = write{&model.Stream{Stream: k.Stream}}
		finds = apiclient.CodeConflict
		attempt = func() (write, error) {
			r, err := w.api.CreateStream(ctx, inShop, streamSpec(k.Stream, 1, true))
			return write{&r}, err
		}
	case w.rng.IntN(10) < 7:
		next := *s.acked.record
		next.Retention.MaxAgeSeconds = &n
		s.pending = write{&next}
		attempt = func() (write, error) {
			r, err := w.api.PatchStream(ctx, k, model.StreamPatch{Retention: &model.Retention{MaxAgeSeconds: &n}})
			return write{&r}, err
		}
	default:
		s.pending = write{}
		finds = apiclient.CodeNotFound
		attempt = func() (write, error) { return write{}, w.api.DeleteStream(ctx, k) }
	}
	for {
		done, err := attempt()
		switch {
		case err == nil:
			s.acked, s.unsure = done, false
			w.tally.done.Add(1)
			return nil
		case s.unsure && finds != "" && apiclient.CodeOf(err) == finds:
			w.tally.repeats.Add(1)
			s.acked, s.unsure = s.pending, false
			w.tally.done.Add(1)
			return nil
		case ctx.Err() != nil:
			return err
		}
		switch w.tally.judge(err) {
		case fatal:
			return fmt.Errorf("%s: %w", k.Stream, err)
		case unanswered:
			s.unsure = true
			if !w.insists {
				w.live = append(w.live[:at], w.live[at+1:]...)
				w.fresh()
				return nil
			}
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// check compares what the writer knows with what there is in the end, and takes
// its streams out.
func (w *writer) check(have map[string]model.Stream) error {
	var all []error
	for n, s := range w.names {
		r, there := have[n]
		delete(have, n)
		if s.acked.is(r, there) || s.unsure && s.pending.is(r, there) {
			continue
		}
		all = append(all, fmt.Errorf("%s is %s (%t); acknowledged was %s, under way %s (%t)",
			n, asJSON(r), there, asJSON(s.acked.record), asJSON(s.pending.record), s.unsure))
	}
	return errors.Join(all...)
}

func (w write) is(r model.Stream, there bool) bool {
	if w.record == nil || !there {
		return w.record == nil && !there
	}
	if w.record.UID != "" && w.record.UID != r.UID {
		return false
	}
	a, b := w.record.Retention.MaxAgeSeconds, r.Retention.MaxAgeSeconds
	return w.record.Stream == r.Stream && (a == nil) == (b == nil) && (a == nil || *a == *b)
}
