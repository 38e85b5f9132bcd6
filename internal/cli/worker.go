package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixlog/felix/client"
)

// A worker runs commands for the records of a group and keeps account of what
// became of each.
type worker struct {
	app   *App
	group *groupAt
	flags *workFlags
	run   *runner
	// ctx ends when the worker is to end; end does that.
	ctx    context.Context
	end    context.CancelCauseFunc
	report *workReport

	mu    sync.Mutex
	begun uint64
	busy  uint64                   // commands that run
	ended map[recordAt][]runResult // commands that ended, until the broker answered; the oldest first
	ill   map[uint32]bool          // shards that could not be polled
	tally workTally
}

// A recordAt names a record of the stream. The claim on it may change while
// the worker has it.
type recordAt struct {
	shard  uint32
	offset uint64
}

// newWorker makes a worker that ends with ctx or by itself. finish waits for
// its last line.
func newWorker(ctx context.Context, a *App, g *groupAt, f *workFlags, run *runner) (w *worker, finish func()) {
	w = &worker{app: a, group: g, flags: f, run: run, ended: make(map[recordAt][]runResult), ill: make(map[uint32]bool)}
	w.ctx, w.end = context.WithCancelCause(ctx)
	w.report = newWorkReport(w.say)
	return w, func() {
		w.end(nil)
		w.report.end()
	}
}

// errEnough is why a worker ends after --count records.
var errEnough = errors.New("enough")

// handle runs the command for a record. What it returns is the verdict.
func (w *worker) handle(ctx context.Context, d client.Delivery) error {
	if !w.begin() {
		return client.RetryAfter(0, errEnough)
	}
	result := runResult{Status: -1}
	if result.err = w.report.room(ctx); result.err == nil {
		result = w.run.run(ctx, &d)
	}
	w.finish(d.Claim, result)
	return w.verdict(ctx, &result)
}

// begin counts a record, and says whether it is one of those asked for. With
// the last of them the worker takes no more.
func (w *worker) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flags.count > 0 && w.begun == w.flags.count {
		return false
	}
	w.begun++
	w.busy++
	if w.begun == w.flags.count {
		w.end(errEnough)
	}
	return true
}

// finish notes how a command ended.
func (w *worker) finish(c client.Claim, result runResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	at := recordAt{c.Shard, c.Offset}
	w.ended[at] = append(w.ended[at], result)
}

// running is the number of commands that run.
func (w *worker) running() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy
}

// verdict says what is to become of a record, in the client's terms: nil for
// an acknowledgement, an error for the others.
func (w *worker) verdict(ctx context.Context, result *runResult) error {
	switch {
	case result.err == nil:
		return nil
	case ctx.Err() != nil:
		// Killed: the claim was lost, or the user insists.
		return client.RetryAfter(0, context.Cause(ctx))
	case errors.Is(result.err, errCannotStart):
		// The next command would not start either. Every record of the group
		// would use up its attempts for that.
		w.end(result.err)
		return client.RetryAfter(0, result.err)
	case w.flags.deadStatus != 0 && result.Status == int(w.flags.deadStatus):
		return client.DeadLetter(result.err)
	case w.flags.nackDelay > 0:
		return client.RetryAfter(w.flags.nackDelay, result.err)
	}
	return result.err
}

// hooks keep account of what the broker was told.
func (w *worker) hooks() client.ConsumeHooks {
	return client.ConsumeHooks{
		Polled:       func(shard uint32, _ int, _ time.Duration, err error) { w.polled(shard, err) },
		Acked:        func(c client.Claim, _ time.Duration) { w.settled(c, resultAcked, 0, nil) },
		Nacked:       func(c client.Claim, delay, _ time.Duration) { w.settled(c, resultHandedBack, delay, nil) },
		DeadLettered: func(c client.Claim, _ time.Duration) { w.settled(c, resultDeadLettered, 0, nil) },
		Failed:       func(c client.Claim, err error) { w.settled(c, resultLost, 0, err) },
	}
}

// settled takes what became of a record.
func (w *worker) settled(c client.Claim, what string, delay time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := recordAt{c.Shard, c.Offset}
	results := w.ended[at]
	if len(results) == 0 {
		w.tally.returned++ // its command never began: a number in the summary
		return
	}
	if w.ended[at] = results[1:]; len(results) == 1 {
		delete(w.ended, at)
	}
	w.tally.count(what)
	if err == nil {
		err = results[0].err
	}
	r := newWorkResult(c, what, results[0], delay, err)
	w.report.put(workLine{object: r, sentence: r.sentence()})
}

// polled says when a shard cannot be polled, and when it can again.
func (w *worker) polled(shard uint32, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || w.ill[shard] == (err != nil) {
		return
	}
	w.ill[shard] = err != nil
	t := workTrouble{Kind: "trouble", Shard: shard}
	line := workLine{sentence: fmt.Sprintf("shard %d is polled again", shard)}
	if err == nil {
		t.Kind = "recovered"
	} else {
		t.Error = err.Error()
		line.sentence = fmt.Sprintf("shard %d cannot be polled, trying on: %s", shard, t.Error)
	}
	line.object = t
	w.report.put(line)
}

// say prints a line.
func (w *worker) say(line workLine) {
	if w.app.flags.json {
		if err := printJSON(w.app.Stdout, line.object); err != nil {
			w.end(fmt.Errorf("print a result: %w", err))
		}
	} else if line.sentence != "" {
		w.app.remark("%s", appendRaw(nil, []byte(line.sentence), w.app.StderrTTY))
	}
}

// summary is the last line.
func (w *worker) summary(took time.Duration) {
	w.mu.Lock()
	t := w.tally
	w.mu.Unlock()
	w.report.put(workLine{object: t.summary(w.group, took), sentence: t.sentence(w.group.label(), took)})
}
