package measure

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestABacklogIsOpenUntilItIsEmptyOrItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBacklog(t.Context(), 10, time.Second)
		defer b.Close()
		b.Take(9)
		if !b.Open() || b.Empty() || b.Polls().Err() != nil || b.Taken() != 9 {
			t.Errorf("one record is left: open %v, empty %v, polls %v, taken %d", b.Open(), b.Empty(), b.Polls().Err(), b.Taken())
		}
		time.Sleep(2 * time.Second)
		if b.Open() || b.Empty() || b.Polls().Err() != nil {
			t.Errorf("its time is over: open %v, empty %v, polls %v", b.Open(), b.Empty(), b.Polls().Err())
		}
		b.Take(1)
		if !b.Empty() || b.Polls().Err() == nil {
			t.Errorf("nothing is left: empty %v, polls %v", b.Empty(), b.Polls().Err())
		}
	})
}

func TestAClosedBacklogEndsItsPolls(t *testing.T) {
	b := NewBacklog(t.Context(), 10, time.Hour)
	b.Close()
	if b.Polls().Err() == nil {
		t.Error("a poll would wait for ever")
	}
}
