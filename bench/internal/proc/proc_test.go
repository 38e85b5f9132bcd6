package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is its own child: with a first argument of "child" it plays
// the part that the second names.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(playChild(os.Args[2]))
	}
	// Under the race detector every process sleeps a second before it ends.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type hello struct {
	PID   int    `json:"pid"`
	CPUs  []int  `json:"cpus"`
	Input string `json:"input"`
}

func playChild(part string) int {
	cpus, err := CPUs()
	if err != nil {
		return 3
	}
	switch part {
	case "serve":
		ctx, cancel, input, err := Attend(context.Background())
		if err != nil {
			return 5
		}
		defer cancel()
		if Say(hello{os.Getpid(), cpus, string(input)}) != nil {
			return 4
		}
		<-ctx.Done()
	case "stubborn": // ignores both its standard input and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		if Say(hello{PID: os.Getpid()}) != nil {
			return 4
		}
		time.Sleep(time.Hour)
	case "fail":
		fmt.Fprintln(os.Stderr, "no such tenant")
		return 7
	case "chatter":
		for i := range 10 * maxLines {
			fmt.Println("line", i)
		}
	}
	return 0
}

// longInput is longer than the buffer of a pipe's reader.
func longInput() string { return strings.Repeat("work to do ", 1000) }

func start(t *testing.T, s *Spawner, cpu int, part string) *Process {
	t.Helper()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Start(Spec{Path: self, Args: []string{"child", part}, Input: []byte(longInput()), CPU: cpu})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	return p
}

func newSpawner(t *testing.T) *Spawner {
	s := NewSpawner()
	t.Cleanup(s.Close)
	return s
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestChildSpeaksAndEndsWhenReleased(t *testing.T) {
	p := start(t, newSpawner(t), AnyCPU, "serve")
	var h hello
	if err := p.Document(bounded(t), &h); err != nil {
		t.Fatal(err)
	}
	if h.PID != p.PID() {
		t.Errorf("child says pid %d, parent %d", h.PID, p.PID())
	}
	if h.Input != longInput() {
		t.Errorf("child was given %d bytes of input, read %d", len(longInput()), len(h.Input))
	}
	if said := p.Gone(); said != "" {
		t.Errorf("a running child is said to be gone: %s", said)
	}
	first := p.Stop()
	if p.Gone() == "" {
		t.Error("a stopped child is not said to be gone")
	}
	if err := syscall.Kill(h.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("child %d is still there: %v", h.PID, err)
	}
	if again := p.Stop(); again != first {
		t.Errorf("a second Stop reports %+v, the first %+v", again, first)
	}
}

func TestChildRunsOnTheCPUItWasGiven(t *testing.T) {
	mine, err := CPUs()
	if err != nil || len(mine) == 0 {
		if runtime.GOOS == "linux" {
			t.Fatalf("CPUs: %v, %v", mine, err)
		}
		return // only Linux binds
	}
	s := newSpawner(t)
	last := mine[len(mine)-1]
	for cpu, want := range map[int][]int{last: {last}, AnyCPU: mine} {
		var h hello
		if err := start(t, s, cpu, "serve").Document(bounded(t), &h); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(h.CPUs) != fmt.Sprint(want) {
			t.Errorf("child on CPU %d may run on %v, want %v", cpu, h.CPUs, want)
		}
	}
	if after, err := CPUs(); err != nil || fmt.Sprint(after) != fmt.Sprint(mine) {
		t.Errorf("the parent's own mask became %v (%v), was %v", after, err, mine)
	}
}

func TestAChildThatWillNotEndIsKilled(t *testing.T) {
	p := start(t, newSpawner(t), AnyCPU, "stubborn")
	var h hello
	if err := p.Document(bounded(t), &h); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	if err := p.Wait(bounded(t)); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Wait = %v, want a kill", err)
	}
}

func TestAFailingChildIsQuoted(t *testing.T) {
	p := start(t, newSpawner(t), AnyCPU, "fail")
	err := p.Document(bounded(t), &hello{})
	if err == nil || !strings.Contains(err.Error(), "no such tenant") || !strings.Contains(err.Error(), "status 7") {
		t.Errorf("error %v does not say what the child said and how it ended", err)
	}
}

func TestUnreadOutputDoesNotBlockTheChild(t *testing.T) {
	p := start(t, newSpawner(t), AnyCPU, "chatter")
	if err := p.Wait(bounded(t)); err != nil {
		t.Fatalf("child did not end: %v", err)
	}
}

func TestWaitingForALineIsBounded(t *testing.T) {
	p := start(t, newSpawner(t), AnyCPU, "serve")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Line(ctx, func(s string) bool { return s == "never" })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Line = %v, want the deadline", err)
	}
}

func TestNoStartAfterClose(t *testing.T) {
	s := NewSpawner()
	s.Close()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(Spec{Path: self, CPU: AnyCPU}); !errors.Is(err, ErrSpawnerClosed) {
		t.Errorf("Start = %v, want ErrSpawnerClosed", err)
	}
}

func TestStartOfAMissingProgramFails(t *testing.T) {
	if _, err := newSpawner(t).Start(Spec{Path: t.TempDir() + "/absent", CPU: AnyCPU}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want not-exist", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var w tail
	for i := range 4000 {
		if _, err := fmt.Fprintf(&w, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.String(); len(s) > stderrCap || !strings.HasSuffix(s, "line 3999\n") {
		t.Errorf("tail holds %d bytes ending in %q", len(s), s[max(0, len(s)-20):])
	}
}

func TestRSSOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // procfs
	}
	rss, err := RSS(os.Getpid())
	if err != nil || rss < 1<<20 || rss > 1<<33 {
		t.Errorf("RSS = %d, %v", rss, err)
	}
}
