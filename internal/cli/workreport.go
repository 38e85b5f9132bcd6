package cli

import (
	"context"
	"sync"
)

// linesAhead is how many lines of a worker may wait to be printed. Then the
// next command waits too.
const linesAhead = 1024

// A workReport prints the lines of a worker, in a goroutine of its own: who
// has one to say, such as a hook of the client, need not wait for a slow
// terminal or pipe.
type workReport struct {
	print func(workLine)

	mu      sync.Mutex
	waiting []workLine
	changed chan struct{} // closed when waiting changes
	ended   chan struct{} // closed when the printer is
	ending  bool
}

// A workLine is what a worker has to say: an object for a program, a sentence
// for a person, which may be empty.
type workLine struct {
	object   any
	sentence string
}

func newWorkReport(print func(workLine)) *workReport {
	r := &workReport{print: print, changed: make(chan struct{}), ended: make(chan struct{})}
	go r.run()
	return r
}

// put adds a line, without waiting.
func (r *workReport) put(line workLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, line)
	r.wake()
}

// wake tells everybody who waits for a change. mu is held.
func (r *workReport) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// room waits until few enough lines wait. Its error is why ctx ended.
func (r *workReport) room(ctx context.Context) error {
	for {
		r.mu.Lock()
		full, changed := len(r.waiting) >= linesAhead, r.changed
		r.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end prints what there is and ends the printer.
func (r *workReport) end() {
	r.mu.Lock()
	r.ending = true
	r.wake()
	r.mu.Unlock()
	<-r.ended
}

func (r *workReport) run() {
	defer close(r.ended)
	for {
		r.mu.Lock()
		lines, changed, ending := r.waiting, r.changed, r.ending
		if len(lines) > 0 {
			r.waiting = nil
			r.wake()
		}
		r.mu.Unlock()
		for _, line := range lines {
			r.print(line)
		}
		switch {
		case len(lines) > 0:
		case ending:
			return
		default:
			<-changed
		}
	}
}
