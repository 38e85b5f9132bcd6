package natsref

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
)

// serve runs a server for the length of the test.
func serve(t *testing.T, spec ServerSpec) (context.Context, Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	endpoints := make(chan Endpoint, 1)
	go func() {
		ended <- Serve(serving, spec, func(e Endpoint) error { endpoints <- e; return nil })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	select {
	case e := <-endpoints:
		return ctx, Target{URL: e.URL, TLS: spec.TLS, Files: spec.Files}
	case err := <-ended:
		ended <- nil
		t.Fatalf("server ended: %v", err)
		return nil, Target{}
	}
}

// brief has no warm-up: what begins in it would not count, and on a busy
// machine one request can outlast it and the run.
func brief() measure.Phases { return measure.Phases{Measure: 100 * time.Millisecond} }

func TestFanoutDeliversEverythingToEverySubscriber(t *testing.T) {
	files, err := pki.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]ServerSpec{"plain": {}, "tls": {TLS: true, Files: files}} {
		t.Run(name, func(t *testing.T) {
			ctx, target := serve(t, spec)
			r, err := Fanout(ctx, FanoutSpec{Target: target, Phases: brief(), Subscribers: 3, Batch: 4, RecordBytes: 32, MaxLag: 64})
			if err != nil {
				t.Fatal(err)
			}
			if r.Records == 0 || r.Bytes != r.Records*32 || r.Lost != 0 || r.Repeated != 0 {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestKVAnswersGetsAndPuts(t *testing.T) {
	ctx, target := serve(t, ServerSpec{JetStream: true, Dir: t.TempDir()})
	for name, spec := range map[string]KVSpec{
		"put":        {Put: true, Conns: 4},
		"get":        {Conns: 4},
		"get shared": {Conns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Target, spec.Phases, spec.InFlight, spec.Value, spec.Keys = target, brief(), 4, 64, 20
			r, err := KV(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			if r.Records == 0 || r.Bytes != r.Records*64 || r.P50 <= 0 || r.P99 < r.P50 {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestEveryWayToPublishIsAcknowledged(t *testing.T) {
	for _, always := range []bool{false, true} {
		for _, way := range []string{WaySync, WayAsync, WayFast} {
			t.Run(fmt.Sprintf("%s, sync always %v", way, always), func(t *testing.T) {
				ctx, target := serve(t, ServerSpec{JetStream: true, SyncAlways: always, Dir: t.TempDir()})
				r, err := Publish(ctx, PublishSpec{Target: target, Phases: brief(), Way: way, InFlight: 8, RecordBytes: 64})
				if err != nil {
					t.Fatal(err)
				}
				if r.Records == 0 || r.Bytes != r.Records*64 || r.Lost != 0 || r.Elapsed <= 0 {
					t.Errorf("result %+v", r)
				}
			})
		}
	}
}

func TestReplayReadsWholeStreams(t *testing.T) {
	ctx, target := serve(t, ServerSpec{JetStream: true, Dir: t.TempDir()})
	const records = 2000
	r, err := Replay(ctx, ReplaySpec{Target: target, Phases: brief(), Records: records, RecordBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Records%records != 0 || r.Bytes != r.Records*64 {
		t.Errorf("result %+v", r)
	}
}

func TestALostServerEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	endpoints := make(chan Endpoint, 1)
	go func() { _ = Serve(serving, ServerSpec{}, func(e Endpoint) error { endpoints <- e; return nil }) }()
	target := Target{URL: (<-endpoints).URL}
	time.AfterFunc(200*time.Millisecond, stop)
	_, err := Fanout(ctx, FanoutSpec{
		Target: target, Phases: measure.Phases{Measure: time.Hour}, Subscribers: 1, Batch: 1, RecordBytes: 1, MaxLag: 16,
	})
	if err == nil || ctx.Err() != nil {
		t.Errorf("err = %v after the server went", err)
	}
}
