package host

import (
	"testing"
	"time"
)

func TestBusyAddsWhatIsNotIdle(t *testing.T) {
	got, err := busy("cpu  100 20 30 9999 9999 1 2 3 50 50")
	if want := 1560 * time.Millisecond; err != nil || got != want {
		t.Errorf("busy = %v, %v; want %v: guest time is in user time, idle and iowait are not busy", got, err, want)
	}
	for _, line := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu a 2 3 4 5 6 7 8"} {
		if _, err := busy(line); err == nil {
			t.Errorf("busy(%q) passes", line)
		}
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		used, span time.Duration
		cpus       int
		want       float64
	}{
		{time.Second, time.Second, 2, .5},
		{-time.Second, time.Second, 2, 0}, // children are counted finer than the machine
		{9 * time.Second, time.Second, 2, 1},
		{time.Second, 0, 2, 0},
	} {
		if got := share(c.used, c.span, c.cpus); got != c.want {
			t.Errorf("share(%v, %v, %d) = %v, want %v", c.used, c.span, c.cpus, got, c.want)
		}
	}
}

func TestOwnWorkIsNotForeign(t *testing.T) {
	w := Begin()
	if !w.known {
		t.Fatal("the load of this machine is not known")
	}
	if got := w.Foreign(time.Hour); got != 0 {
		t.Errorf("with an hour of children's work, foreign load is %v", got)
	}
}
