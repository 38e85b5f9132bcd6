package schedule

import "fmt"

// A Verdict is what a task leaves its lane in.
type Verdict uint8

const (
	// Done frees the lane.
	Done Verdict = iota
	// DoneYield frees the lane and lets other goroutines run before the
	// caller goes on.
	DoneYield
	// Held keeps the lane until [Lane.Continue], which may already have been
	// called when Run returns.
	Held
)

// A Task is what a job does.
type Task interface {
	// Run does the ordered work. It must not wait. The scheduler does not
	// touch the job afterwards, so a task may recycle itself. A task that has
	// arranged to be continued must not panic any more.
	Run() Verdict
	// Fail ends a job whose Run panicked; err is a [*PanicError].
	Fail(err error)
}

// A Job is a task with its cost, linked into its lane. It may be used again
// once its task runs.
type Job struct {
	Task Task
	// Cost is what the tenant is charged, in payload bytes; less than 1
	// counts as 1.
	Cost int64

	next *Job
}

// A PanicError is a panic of a task, reported to whom the task answers.
type PanicError struct {
	Value any
}

func (e *PanicError) Error() string { return fmt.Sprintf("publish panicked: %v", e.Value) }

// A Pass is the right to submit one job to a lane. Every pass is used.
type Pass uint8

const (
	// noPass accompanies an error.
	noPass Pass = iota
	// Inline: the lane is the caller's, the job runs at once.
	Inline
	// Slot: a place in the queue is reserved.
	Slot
)
