package demo_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/examples"
	"github.com/felixlog/felix/internal/cli"
	"github.com/felixlog/felix/internal/demo"
	"github.com/felixlog/felix/internal/dev"
)

// asFelix makes this test binary be the felix command.
const asFelix = "as-felix"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asFelix {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// felix makes the command that runs this test binary as felix.
func felix(args ...string) *exec.Cmd {
	return exec.Command(os.Args[0], append([]string{asFelix}, args...)...)
}

// worker makes the command of one of the demo's workers.
func worker() *exec.Cmd { return felix("demo", "worker") }

func broker(t *testing.T) *dev.Process {
	t.Helper()
	p, err := dev.Spawn(t.Context(), felix, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestEveryReadingSeesEverything(t *testing.T) {
	t.Parallel()
	show := demo.New(slices.Collect(examples.QuakeLines()), 0, worker)
	report, err := show.Run(t.Context(), broker(t))
	if err != nil {
		t.Fatal(err)
	}
	if report.Published != 1707 || report.Received != 1707 || !report.InOrder || report.CacheNetworks != 12 ||
		report.CacheWrites != 1707 || !report.CacheCorrect || !report.OK || report.Paced {
		t.Errorf("report %+v", report)
	}
	if !report.Killed || report.KilledAfter < 853 || report.RecoveryMS <= 0 || report.Replayed != 1707 || !report.ReplayCorrect {
		t.Errorf("the kill: report %+v", report)
	}
	if report.Strong != 39 || report.StrongWorked != 39 || report.QueueFinished != 1707 || report.QueueClaims < 1707 ||
		report.QueueCommitted != 1707 || report.QueueTail != 1707 || report.QueueInFlight != 0 || report.QueueOwed != 0 {
		t.Errorf("the queue: report %+v", report)
	}
	if !report.WorkerKilled || report.ClaimsHeld == 0 || report.ClaimsBack != report.ClaimsHeld || report.QueueRedeliveries < report.ClaimsBack {
		t.Errorf("the killed worker: report %+v", report)
	}
	if report.PoisonAttempts < 1 || report.PoisonAttempts > report.MaxAttempts+1 || !report.GivenUp || report.DeadLetters != 1 ||
		!report.Redriven || !report.RedrivenWorked || report.DeadLettersLeft != 0 {
		t.Errorf("the poison: report %+v", report)
	}
	if report.PublishRate <= 0 || report.ReceiveRate <= 0 || report.DeliveryMedianUS <= 0 || report.CachePutMedianUS <= 0 || report.CacheGetMedianUS <= 0 ||
		report.QueueClaimMedianUS <= 0 || report.ClaimsBackMS <= 0 {
		t.Errorf("a figure is missing: %+v", report)
	}
	end := show.Snapshot()
	if end.Published != 1707 || end.Received != 1707 || end.Cached != 1707 || !end.InOrder || len(end.Latest) != 12 || end.Last.Place == "" || !end.Kill.Done() {
		t.Errorf("the show ended at %+v", end)
	}
	if q := end.Queue; q.Finished != 1707 || q.Worked != 39 || !q.Killed || q.Back != q.Held || !q.Poison.Worked || q.Last.Place == "" {
		t.Errorf("the queue of the show ended at %+v", q)
	}
	line, err := json.Marshal(report)
	if err != nil || !strings.HasPrefix(string(line), `{"published":1707,"received":1707,"in_order":true,"cache_networks":12,`) {
		t.Errorf("as JSON: %s, error %v", line, err)
	}
}

func TestPacedDemoSaysSo(t *testing.T) {
	t.Parallel()
	report, err := demo.New(slices.Collect(examples.QuakeLines())[:50], 5000, worker).Run(t.Context(), broker(t))
	if err != nil {
		t.Fatal(err)
	}
	if !report.Paced || !report.OK || report.Total() != 50 {
		t.Errorf("report %+v", report)
	}
}

func TestRecordsThatAreNoQuakesAreRefused(t *testing.T) {
	t.Parallel()
	b := broker(t)
	for _, record := range []string{"", "{", `{"mag":1}`} {
		_, err := demo.New([][]byte{[]byte(record)}, 0, worker).Run(t.Context(), b)
		if err == nil || !strings.Contains(err.Error(), "record 0") {
			t.Errorf("%q: error %v", record, err)
		}
	}
}

// The demo says that something is wrong when something is: here a record that
// nobody expects is in the stream before it starts.
func TestWrongCountIsTold(t *testing.T) {
	t.Parallel()
	b := broker(t)
	c, err := b.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Publish(t.Context(), demo.StreamName, []byte(`{"net":"zz"}`)); err != nil {
		t.Fatal(err)
	}
	report, err := demo.New(slices.Collect(examples.QuakeLines())[:50], 0, worker).Run(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if report.InOrder || report.StreamOK() || report.LogOK() || report.QueueOK() || report.OK {
		t.Errorf("report %+v: want a stream that is not in order, and a log and a queue with a record too many", report)
	}
}

// A worker that ends by itself fails the demo, which says why.
func TestWorkerThatFailsIsTold(t *testing.T) {
	t.Parallel()
	failing := func() *exec.Cmd { return felix("demo", "worker", "and", "more") }
	_, err := demo.New(slices.Collect(examples.QuakeLines())[:50], 0, failing).Run(t.Context(), broker(t))
	if err == nil || strings.Count(err.Error(), `felix demo worker does not take the argument "and"`) != 1 {
		t.Errorf("error %v", err)
	}
}
