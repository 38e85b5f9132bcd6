package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/bench/internal/redisref"
	"github.com/felixlog/felix/bench/internal/report"
	"github.com/felixlog/felix/bench/internal/schedule"
)

// TestMain lets the test binary be its own children, as compare is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childMarker {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(childMain(ctx, os.Args[2:], os.Stderr))
	}
	// Under the race detector every process sleeps a second before it ends.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// testBench prepares runs without a warm-up: what begins in it would not
// count, and on a busy machine one request can outlast it and the run.
func testBench(t *testing.T) (context.Context, *bench) {
	t.Helper()
	b, err := newBench(settings{phases: measure.Phases{Measure: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	b.stored = stored{replay: 5000, backlog: 2500, claims: 2000}
	return bounded(t), b
}

// bounded is how long one run may take on a slow machine.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestReferencesRun makes one very short run of each kind of reference, in
// processes of their own, and looks only at what was counted.
func TestReferencesRun(t *testing.T) {
	_, b := testBench(t)
	all := contenders()
	for _, id := range []string{
		rawBulk(largeRecord), rawBulkFanout, rawLonePoll, rawEcho("get", cacheBytes),
		natsFanout, natsFanoutTLS, natsKV("get", kvMemory), natsKV("put", kvFile),
		redisLoad("get", redisTLS), redisLoad("put", redisTLSPipelined), redisLoad("get", redisPlain),
		groupCommit, natsSyncAlways, natsSyncTLS, natsAsyncAlways, natsFastAlways, natsReplay,
		redisAppend, redisAppendTLS, redisDurable("put"),
		natsFetch(pollBatch, 8), natsFetchTLS, natsConsume, natsAcksAnswered, natsAcksNotAnswered,
	} {
		t.Run(id, func(t *testing.T) {
			s := b.run(bounded(t), all[id], schedule.Unpinned)
			if _, err := redisref.Find(); all[id].redis && err != nil {
				if !strings.Contains(s.Failed, "apt-get install redis-server") {
					t.Errorf("without Redis the run says %q", s.Failed)
				}
				return
			}
			if s.Failed != "" {
				t.Fatal(s.Failed)
			}
			r := s.Result
			if r.Records == 0 || r.Elapsed <= 0 || r.Lost != 0 || r.Repeated != 0 {
				t.Errorf("result %+v", r)
			}
			if s.ClientCPU <= 0 || (s.ServerCPU <= 0) != (id == groupCommit) {
				t.Errorf("CPU time of client %v s, of server %v s", s.ClientCPU, s.ServerCPU)
			}
		})
	}
}

func TestPinnedRunsKeepToTheirCPUs(t *testing.T) {
	ctx, b := testBench(t)
	cpus, err := proc.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	b.clientCPU, b.serverCPU, err = twoCPUs()
	if (err == nil) != (len(cpus) >= 2) {
		t.Fatalf("twoCPUs with %d CPUs: %v", len(cpus), err)
	}
	if err != nil {
		return // one CPU: refused, as it should be
	}
	if s := b.run(ctx, contenders()[rawLone], schedule.Pinned); s.Failed != "" || s.Result.Records == 0 {
		t.Errorf("pinned run: %+v", s)
	}
}

func TestARunThatCannotStartIsReported(t *testing.T) {
	ctx, b := testBench(t)
	b.felix = t.TempDir() + "/absent"
	s := b.run(ctx, contenders()[felixLone], schedule.Unpinned)
	if !strings.Contains(s.Failed, "absent") || s.Invalid() == "" {
		t.Errorf("sample %+v", s)
	}
	l := report.Judge(catalogue()[0].Row, schedule.Unpinned, []report.Sample{s}, []report.Sample{s})
	if l.Verdict != report.Invalid || l.Why == "" {
		t.Errorf("verdict %s, why %q", l.Verdict, l.Why)
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	ctx, b := testBench(t)
	b.phases.Measure = time.Hour
	ctx, cancel := context.WithCancel(ctx)
	var pid int
	watched := contender{start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		s, part, spec, err := contenders()[rawLone].start(ctx, b, cpu)
		if err == nil {
			pid = s.process.PID()
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		return s, part, spec, err
	}}
	s := b.run(ctx, watched, schedule.Unpinned)
	if s.Failed == "" {
		t.Error("an interrupted run passes")
	}
	if err := syscall.Kill(pid, 0); pid == 0 || err == nil {
		t.Errorf("the server %d lives on", pid)
	}
}

func TestAChildWithoutAKnownPartIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"no-such-part"}, {partRawServer, "{}"}} {
		var said strings.Builder
		if code := childMain(t.Context(), args, &said); code != exitUsage || !strings.Contains(said.String(), partRawServer) {
			t.Errorf("childMain(%q) = %d, says %q", args, code, said.String())
		}
	}
}
