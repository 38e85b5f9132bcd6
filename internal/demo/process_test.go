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

func broker(t *testing.T) *dev.Process {
	t.Helper()
	p, err := dev.Spawn(t.Context(), func(args ...string) *exec.Cmd {
		return exec.Command(os.Args[0], append([]string{asFelix}, args...)...)
	}, t.TempDir())
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
	show := demo.New(slices.Collect(examples.QuakeLines()), 0)
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
	if report.PublishRate <= 0 || report.ReceiveRate <= 0 || report.DeliveryMedianUS <= 0 || report.CachePutMedianUS <= 0 || report.CacheGetMedianUS <= 0 {
		t.Errorf("a figure is missing: %+v", report)
	}
	end := show.Snapshot()
	if end.Published != 1707 || end.Received != 1707 || end.Cached != 1707 || !end.InOrder || len(end.Latest) != 12 || end.Last.Place == "" || !end.Kill.Done() {
		t.Errorf("the show ended at %+v", end)
	}
	line, err := json.Marshal(report)
	if err != nil || !strings.HasPrefix(string(line), `{"published":1707,"received":1707,"in_order":true,"cache_networks":12,`) {
		t.Errorf("as JSON: %s, error %v", line, err)
	}
}

func TestPacedDemoSaysSo(t *testing.T) {
	report, err := demo.New(slices.Collect(examples.QuakeLines())[:50], 5000).Run(t.Context(), broker(t))
	if err != nil {
		t.Fatal(err)
	}
	if !report.Paced || !report.OK || report.Total() != 50 {
		t.Errorf("report %+v", report)
	}
}

func TestRecordsThatAreNoQuakesAreRefused(t *testing.T) {
	b := broker(t)
	for _, record := range []string{"", "{", `{"mag":1}`} {
		_, err := demo.New([][]byte{[]byte(record)}, 0).Run(t.Context(), b)
		if err == nil || !strings.Contains(err.Error(), "record 0") {
			t.Errorf("%q: error %v", record, err)
		}
	}
}
