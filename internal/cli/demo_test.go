package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/felixlog/felix/internal/demo"
)

// The demo says that something is wrong when something is.
func TestDemoFailsWhenACountIsWrong(t *testing.T) {
	ta := newTestApp(t, nil)
	err := ta.tellDemo(&ta.out, &demo.Report{})
	if ta.report(err, false) != ExitOther || strings.Count(ta.out.String(), "WRONG") != 6 {
		t.Errorf("error %v, said %s", err, &ta.out)
	}
}

// The view shows what goes wrong in the queue as it happens.
func TestDemoViewShowsTheQueue(t *testing.T) {
	s := demo.Snapshot{Total: 1707, InOrder: true}
	show := func() []string {
		var lines []string
		for _, line := range demoLines(s, 80, 24) {
			lines = append(lines, ansi.Strip(line))
		}
		return lines
	}
	wants := func(when string, wanted ...string) {
		t.Helper()
		shown := show()
		for _, line := range wanted {
			if !slices.ContainsFunc(shown, func(have string) bool { return strings.Contains(have, line) }) {
				t.Errorf("%s: %q does not show in %q", when, line, shown)
			}
		}
	}
	q := &s.Queue
	q.Strong, q.Finished = 39, 1200
	wants("at work", " 1,200, 0 of 39 strong")
	if lines := show(); len(lines) != 4 {
		t.Errorf("nothing has gone wrong, and it shows %q", lines)
	}
	q.Worked, q.Last = 7, demo.Quake{Net: "us", Mag: 5.3, Place: "Reykjanes Ridge"}
	wants("working", "7 of 39 strong", "worked   M  5.3  Reykjanes Ridge")
	q.Killed, q.Held, q.Back = true, 14, 3
	wants("a worker killed", "worker   killed with 14 claims, 3 are back")
	q.Back, q.BackAfter = 14, 1100*time.Millisecond
	wants("its claims back", "worker   killed with 14 claims, all back after 1.1s")
	q.Poison.Attempts = 2
	wants("failing", "poison   failed 2 times")
	q.Poison.Attempts, q.Poison.GivenUp = 5, true
	wants("given up", "poison   failed 5 times, is a dead letter")
	q.Poison.Redriven = true
	wants("redriven", "poison   failed 5 times, was given up, is back in play")
	q.Poison.Worked = true
	wants("worked", "poison   failed 5 times, was given up, redriven and worked")
}

// On a terminal the demo redraws one block, no wider or higher than the
// terminal, and gives the cursor back.
func TestDemoOnATerminal(t *testing.T) {
	t.Parallel()
	ta := newTestApp(t, nil)
	screen := &lockedBuffer{}
	ta.Stdout, ta.StdoutTTY = screen, true
	ta.Environ = func() []string { return []string{"TERM=xterm-256color"} }
	ta.Size = func() (int, int) { return 60, 12 }
	if code := ta.Run(t.Context(), []string{"demo", "--fast"}); code != ExitOK {
		t.Fatalf("exit %d: %s", code, &ta.errs)
	}
	seen := screen.String()
	if strings.Count(seen, hideCursor) != 1 || strings.LastIndex(seen, showCursor) < strings.LastIndex(seen, clearBelow) {
		t.Error("the cursor was not given back at the end")
	}
	if strings.Contains(seen, "\x1b[9A") || !strings.Contains(seen, "\x1b[8A") {
		t.Errorf("the block does not have the 8 lines that fit 12: %q", seen[:min(len(seen), 2000)])
	}
}

func TestDemoIsStopped(t *testing.T) {
	t.Parallel()
	ta := newTestApp(t, nil)
	screen := &lockedBuffer{}
	ta.Stdout, ta.StdoutTTY = screen, true
	ta.Environ = func() []string { return []string{"TERM=xterm", "NO_COLOR=1"} }
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() { done <- ta.Run(ctx, []string{"demo"}) }()
	waitFor(t, func() bool { return strings.Contains(screen.String(), "in order") })
	cancel(errInterrupted)
	if code := <-done; code != ExitOther || ta.errs.String() != "felix: interrupted\n" {
		t.Errorf("exit %d, said %q", code, &ta.errs)
	}
	if !strings.HasSuffix(strings.TrimRight(screen.String(), "\n"), showCursor) {
		t.Error("the cursor was not given back")
	}
	if strings.Contains(screen.String(), "\x1b[36m") {
		t.Error("it has colours in spite of NO_COLOR")
	}
}
