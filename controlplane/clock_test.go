package controlplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

func TestStepsOfTheClockAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	clock := new(stepped.Clock)
	s := &Server{o: Options{Clock: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	turn := s.watchClock()
	for _, step := range []struct {
		by   time.Duration
		said string
	}{
		{0, ""}, {clockStep / 2, ""}, {time.Hour, "set forward"}, {0, ""}, {-time.Hour, "set back"}, {10 * 365 * 24 * time.Hour, "set forward"}, {0, ""},
	} {
		log.Reset()
		clock.Step(step.by)
		turn(t.Context())
		if got := log.String(); strings.Count(got, "\n") != min(len(step.said), 1) || !strings.Contains(got, step.said) {
			t.Errorf("a step of %v: %q", step.by, got)
		}
	}
}
