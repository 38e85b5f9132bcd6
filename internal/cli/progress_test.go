package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is a terminal that is written to from a drawing goroutine.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// progressOf runs a job of 100 under a progress line and returns what a
// person saw of it while it ran.
func progressOf(t *testing.T, tty bool, flags globalFlags, total uint64) string {
	t.Helper()
	screen := &lockedBuffer{}
	a := &App{Stderr: screen, StderrTTY: tty, flags: flags}
	bar := a.startProgress("publishing", total, "message")
	bar.add(50)
	if tty && !flags.quiet && !flags.json {
		waitFor(t, func() bool { return strings.Contains(screen.String(), "messages/s") })
	}
	bar.add(50)
	bar.finish()
	bar.finish()
	return screen.String()
}

func TestProgressIsForPeopleOnly(t *testing.T) {
	for name, seen := range map[string]string{
		"no terminal": progressOf(t, false, globalFlags{}, 100),
		"quiet":       progressOf(t, true, globalFlags{quiet: true}, 100),
		"json":        progressOf(t, true, globalFlags{json: true}, 100),
	} {
		if seen != "" {
			t.Errorf("%s: drew %q", name, seen)
		}
	}
}

func TestProgressShowsShareRateAndTimeLeft(t *testing.T) {
	seen := progressOf(t, true, globalFlags{}, 100)
	for _, want := range []string{"publishing", "%", "messages/s", "left"} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %q in %q", want, seen)
		}
	}
}

func TestProgressWithoutTotalShowsCountAndRate(t *testing.T) {
	seen := progressOf(t, true, globalFlags{}, 0)
	if strings.Contains(seen, "%") || strings.Contains(seen, "left") || !strings.Contains(seen, "publishing") {
		t.Errorf("drew %q", seen)
	}
}
