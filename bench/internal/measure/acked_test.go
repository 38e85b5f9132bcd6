package measure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe answers batches one by one, each after a while.
type pipe struct {
	every  time.Duration
	slots  chan func(error)
	answer func(n int) error
	idle   chan struct{}
}

func (p *pipe) serve() {
	n := 0
	for done := range p.slots {
		time.Sleep(p.every)
		n++
		done(p.answer(n))
	}
	close(p.idle)
}

func (p *pipe) send(ctx context.Context, done func(error)) error {
	select {
	case p.slots <- done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pipe) flush(context.Context) error {
	close(p.slots)
	<-p.idle
	return nil
}

func newPipe(answer func(int) error) *pipe {
	p := &pipe{every: 10 * time.Millisecond, slots: make(chan func(error), 15), answer: answer, idle: make(chan struct{})}
	go p.serve()
	return p
}

func TestAckedCountsAnswersUpToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(func(int) error { return nil })
		a := Acked{Batch: 64, RecordBytes: 10, Window: 16 * 640}
		r, err := a.Run(t.Context(), Phases{Warmup: time.Second, Measure: 4 * time.Second}, p.send, p.flush)
		if err != nil {
			t.Fatal(err)
		}
		// 100 batches a second whatever the window holds, also over the drain.
		if rate := RecordsPerSec.Of(r); rate < 6350 || rate > 6450 {
			t.Errorf("rate %v, want 6400", rate)
		}
		if r.Elapsed < 4*time.Second+100*time.Millisecond {
			t.Errorf("elapsed %v leaves out the drain of the window", r.Elapsed)
		}
		if r.Bytes != r.Records*10 || r.Lost != 0 || r.Invalid() != "" {
			t.Errorf("result %+v, invalid %q", r, r.Invalid())
		}
	})
}

func TestARefusedPublishEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(func(n int) error {
			if n == 50 {
				return errors.New("overloaded")
			}
			return nil
		})
		_, err := Acked{Batch: 1, RecordBytes: 1}.Run(t.Context(), Phases{Measure: time.Hour}, p.send, p.flush)
		if err == nil || !strings.Contains(err.Error(), "overloaded") {
			t.Errorf("err = %v, want the refusal", err)
		}
		close(p.slots)
		<-p.idle
	})
}

func TestAnswersThatNeverComeAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, err := Acked{Batch: 2, RecordBytes: 1}.Run(t.Context(), Phases{Measure: time.Second},
			func(_ context.Context, done func(error)) error {
				time.Sleep(10 * time.Millisecond)
				if n++; n != 5 {
					done(nil)
				}
				return nil
			}, func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if r.Lost != 2 || r.Invalid() == "" {
			t.Errorf("lost %d, invalid %q", r.Lost, r.Invalid())
		}
	})
}
