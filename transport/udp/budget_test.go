package udp

import "testing"

func TestPollBudget(t *testing.T) {
	var none *PollBudget
	if !none.acquire() {
		t.Error("no budget is a bound")
	}
	none.release()
	b := NewPollBudget(2)
	for i, want := range []bool{true, true, false, false} {
		if got := b.acquire(); got != want {
			t.Errorf("place %d of two: %v", i, got)
		}
	}
	b.release()
	for i, want := range []bool{true, false} {
		if got := b.acquire(); got != want {
			t.Errorf("place %d of the one given back: %v", i, got)
		}
	}
}
