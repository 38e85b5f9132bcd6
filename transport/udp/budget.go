package udp

import "sync/atomic"

// A PollBudget bounds how many sockets poll at one time, so that several
// listeners of one process do not keep every CPU busy looking.
type PollBudget struct {
	max    int32
	active atomic.Int32
}

// NewPollBudget allows n sockets to poll at one time.
func NewPollBudget(n int) *PollBudget { return &PollBudget{max: int32(n)} }

// acquire takes a place, or says that none is free. A nil budget is boundless.
func (b *PollBudget) acquire() bool {
	if b == nil {
		return true
	}
	if b.active.Add(1) > b.max {
		b.active.Add(-1)
		return false
	}
	return true
}

func (b *PollBudget) release() {
	if b != nil {
		b.active.Add(-1)
	}
}
