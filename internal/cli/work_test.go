package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

func TestWorkArguments(t *testing.T) {
	for line, want := range map[string]string{
		"s g -- true":          "",
		"s g -- sh -c x":       "",
		"--count 1 s g -- a":   "",
		"s g --count 1 -- a b": "",
		"s g":                  "needs -- COMMAND",
		"s g --":               "needs -- COMMAND",
		"s":                    "needs GROUP",
		"":                     "needs STREAM and GROUP",
		"-- true":              "needs STREAM and GROUP",
		"s -- true":            "needs GROUP",
		"s g true":             "needs -- before its COMMAND",
		"s g h -- true":        `does not take the argument "h"`,
	} {
		cmd := newTestApp(t, nil).workCommand()
		err := cmd.ParseFlags(strings.Fields(line))
		if err == nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want) || explain(err).Exit != ExitUsage):
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// newTestRunner runs sh with a script, its output into files.
func newTestRunner(t *testing.T, script string) (r *runner, output func() string) {
	t.Helper()
	ta := newTestApp(t, nil)
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	ta.Stdout, ta.Stderr = file, file
	ta.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH"), "KEPT=yes", "FELIX_GROUP=outer"} }
	if r, err = ta.newRunner("orders", "billing", []string{"sh", "-c", script}); err != nil {
		t.Fatal(err)
	}
	return r, func() string {
		data, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

func TestRunnerTellsTheCommand(t *testing.T) {
	r, output := newTestRunner(t, `cat; echo " $FELIX_STREAM $FELIX_GROUP $FELIX_SHARD:$FELIX_OFFSET:$FELIX_ATTEMPTS $FELIX_TIMESTAMP $KEPT"; env | grep -c ^FELIX_GROUP=`)
	d := client.Delivery{Claim: client.Claim{Shard: 1, Offset: 17, Attempts: 2}, Payload: []byte("hello\x00"), Time: describedAt.Add(1500 * time.Microsecond)}
	if result := r.run(t.Context(), &d); result.err != nil || result.Status != 0 {
		t.Fatalf("%+v", result)
	}
	if got, want := output(), "hello\x00 orders billing 1:17:2 2026-01-31T12:00:00.001500Z yes\n1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunnerStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": -1} {
		r, _ := newTestRunner(t, script)
		result := r.run(t.Context(), &client.Delivery{})
		if result.Status != want || (result.err == nil) != (want == 0) {
			t.Errorf("%s: %+v", script, result)
		}
	}
	// A command need not read its input, however long that is.
	r, _ := newTestRunner(t, "exit 0")
	if result := r.run(t.Context(), &client.Delivery{Payload: make([]byte, 1<<20)}); result.err != nil {
		t.Errorf("input not read: %+v", result)
	}
}

func TestRunnerCannotStart(t *testing.T) {
	ta := newTestApp(t, nil)
	if _, err := ta.newRunner("s", "g", []string{"no-such-command-anywhere"}); err == nil || explain(err).Exit != ExitUsage {
		t.Errorf("a command that is not there: %v", err)
	}
	r, _ := newTestRunner(t, "true")
	r.path = filepath.Join(t.TempDir(), "gone")
	if result := r.run(t.Context(), &client.Delivery{}); !errors.Is(result.err, errCannotStart) {
		t.Errorf("a command that went away: %+v", result)
	}
}

func TestVerdicts(t *testing.T) {
	failed := errors.New("exit status 3")
	lost := &client.ClaimLostError{Claim: client.Claim{Offset: 1}, Err: client.ErrStaleClaim}
	live := t.Context()
	over, end := context.WithCancelCause(t.Context())
	end(lost)
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		flags  workFlags
		result runResult
		want   error
	}{
		{"done", live, workFlags{}, runResult{}, nil},
		{"done although killed", over, workFlags{}, runResult{}, nil},
		{"failed", live, workFlags{}, runResult{Status: 3, err: failed}, failed},
		{"failed, a delay", live, workFlags{nackDelay: time.Second}, runResult{Status: 3, err: failed}, client.RetryAfter(time.Second, failed)},
		{"failed for good", live, workFlags{deadStatus: 3, nackDelay: time.Second}, runResult{Status: 3, err: failed}, client.DeadLetter(failed)},
		{"failed otherwise", live, workFlags{deadStatus: 4}, runResult{Status: 3, err: failed}, failed},
		{"killed", over, workFlags{deadStatus: 3}, runResult{Status: -1, err: failed}, client.RetryAfter(0, lost)},
		{"could not start", live, workFlags{deadStatus: 3}, runResult{Status: -1, err: errCannotStart}, client.RetryAfter(0, errCannotStart)},
	} {
		w, finish := newWorker(t.Context(), newTestApp(t, nil).App, &groupAt{}, &tc.flags, nil)
		got := w.verdict(tc.ctx, &tc.result)
		ended := context.Cause(w.ctx)
		finish()
		if (got == nil) != (tc.want == nil) || got != nil && got.Error() != tc.want.Error() {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if (ended != nil) != errors.Is(tc.result.err, errCannotStart) {
			t.Errorf("%s: the worker ends with %v", tc.name, ended)
		}
	}
}

// With --count the command runs that often, and no more is taken.
func TestWorkerCount(t *testing.T) {
	run, _ := newTestRunner(t, "true")
	w, finish := newWorker(t.Context(), newTestApp(t, nil).App, &groupAt{}, &workFlags{count: 2}, run)
	defer finish()
	for i := range 3 {
		err := w.handle(t.Context(), client.Delivery{Claim: client.Claim{Offset: uint64(i)}})
		if (err != nil) != (i == 2) {
			t.Errorf("record %d: %v", i, err)
		}
		if ended := context.Cause(w.ctx); errors.Is(ended, errEnough) != (i >= 1) {
			t.Errorf("after record %d the worker ends with %v", i, ended)
		}
	}
}

// Each record whose command ran has one line; the others are numbers.
func TestWorkerAccount(t *testing.T) {
	ta := newTestApp(t, nil)
	ta.flags.json = true
	run, _ := newTestRunner(t, `exit $FELIX_OFFSET`)
	w, finish := newWorker(t.Context(), ta.App, &groupAt{stream: "orders", name: "billing"}, &workFlags{}, run)
	hooks := w.hooks()
	claim := func(offset uint64) client.Claim { return client.Claim{Offset: offset, Attempts: 1} }
	for offset := range uint64(5) {
		_ = w.handle(t.Context(), client.Delivery{Claim: claim(offset)}) // its verdict is told below
	}
	hooks.Acked(claim(0), 0)
	hooks.Nacked(claim(1), 2*time.Second, 0)
	hooks.DeadLettered(claim(2), 0)
	hooks.Failed(claim(3), &client.ClaimLostError{Claim: claim(3), Err: client.ErrStaleClaim})
	hooks.Failed(claim(4), errPlain("connection lost"))
	hooks.Nacked(claim(9), 0, 0) // never begun
	for _, err := range []error{nil, errPlain("no answer"), errPlain("no answer"), nil, nil} {
		hooks.Polled(1, 0, 0, err)
	}
	if err := context.Cause(w.ctx); err != nil {
		t.Errorf("told to end: %v", err)
	}
	w.summary(1500 * time.Millisecond)
	finish()
	var lines []string
	for line := range strings.Lines(ta.out.String()) {
		before, rest, _ := strings.Cut(line, `"seconds":`)
		_, after, ok := strings.Cut(rest, ",")
		if ok {
			line = before + after
		}
		lines = append(lines, line)
	}
	for i, has := range []string{
		`"claim":"0:0:1","shard":0,"offset":0,"attempts":1,"result":"acked","status":0,`,
		`"claim":"0:1:1","shard":0,"offset":1,"attempts":1,"result":"handed_back","status":1,"delay_ms":2000,"error":"exit status 1"}`,
		`"claim":"0:2:1","shard":0,"offset":2,"attempts":1,"result":"dead_lettered","status":2,"error":"exit status 2"}`,
		`"claim":"0:3:1","shard":0,"offset":3,"attempts":1,"result":"lost","status":3,"error":"claim 0:3:1 lost: stale claim"}`,
		`"claim":"0:4:1","shard":0,"offset":4,"attempts":1,"result":"lost","status":4,"error":"connection lost"}`,
		`{"kind":"trouble","shard":1,"error":"no answer"}`,
		`{"kind":"recovered","shard":1}`,
		`{"kind":"summary","stream":"orders","group":"billing","worked":5,"acked":1,"handed_back":1,"dead_lettered":1,"lost":2,"returned":1,"seconds":1.5}`,
	} {
		if i >= len(lines) || !strings.Contains(lines[i], has) {
			t.Errorf("line %d of %q has no %s", i, lines, has)
		}
	}
	if len(w.ended) != 0 || w.running() != 0 {
		t.Errorf("left over: %d results, %d running", len(w.ended), w.running())
	}
}

// Who has something to say does not wait for the printer; who begins new work
// does, when too much is unsaid.
func TestWorkReportBounds(t *testing.T) {
	said, printing, resume := 0, make(chan struct{}, 1), make(chan struct{})
	r := newWorkReport(func(workLine) {
		select {
		case printing <- struct{}{}:
		default:
		}
		<-resume
		said++
	})
	r.put(workLine{})
	<-printing
	for range linesAhead - 1 {
		r.put(workLine{})
	}
	if err := r.room(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.put(workLine{})
	ended, end := context.WithCancelCause(t.Context())
	end(errEnough)
	if err := r.room(ended); !errors.Is(err, errEnough) {
		t.Errorf("room for more than %d lines: %v", linesAhead, err)
	}
	close(resume)
	if err := r.room(t.Context()); err != nil {
		t.Error(err)
	}
	r.end()
	if said != linesAhead+1 {
		t.Errorf("%d lines said", said)
	}
}

func TestWorkLines(t *testing.T) {
	c := client.Claim{Offset: 17, Attempts: 2}
	failed := runResult{Status: 1, err: errPlain("exit status 1")}
	for _, tc := range []struct {
		result workResult
		want   string
	}{
		{newWorkResult(c, resultAcked, runResult{}, 0, nil), ""},
		{newWorkResult(c, resultHandedBack, failed, 0, failed.err), "0:17:2: exit status 1; handed back, to be handed out again at once"},
		{newWorkResult(c, resultHandedBack, failed, 2*time.Second, failed.err), "0:17:2: exit status 1; handed back, to be handed out again in 2s"},
		{newWorkResult(c, resultDeadLettered, failed, 0, failed.err), "0:17:2: exit status 1; given up, it is a dead letter now"},
		{newWorkResult(c, resultLost, failed, 0, client.ErrStaleClaim), "0:17:2: the claim was lost, and somebody else gets the record: stale claim"},
		{newWorkResult(c, resultLost, failed, 0, errPlain("gone")), "0:17:2: the broker could not be told (gone); the record is handed out again"},
	} {
		if got := tc.result.sentence(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	tally := workTally{acked: 1200, handedBack: 1, lost: 2, returned: 3}
	if got, want := tally.sentence("billing of orders", 61*time.Second), "worked on 1,203 records of group billing of orders in 1m1s: 1,200 finished, 1 handed back, 2 lost; 3 handed back untouched"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (&workTally{}).sentence("g of s", time.Second), "worked on 0 records of group g of s in 1s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWorkFlags(t *testing.T) {
	for _, wrong := range []string{
		"--concurrency 0", "--concurrency 5000", "--batch 0", "--batch 1001", "--visibility 10ms", "--visibility 13h", "--count 0",
		"--nack-delay -1s", "--nack-delay 13h", "--dead-letter-status 0", "--drain 0s", "--drain -1s", "--as=",
	} {
		ta := newTestApp(t, nil)
		args := slices.Concat([]string{"work", "s", "g"}, strings.Fields(wrong), []string{"--", "true"})
		if code := ta.Run(t.Context(), args); code != ExitUsage || !strings.Contains(ta.errs.String(), "want") {
			t.Errorf("%s: exit %d, %s", wrong, code, &ta.errs)
		}
	}
}
