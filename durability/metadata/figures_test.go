package metadata

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

const (
	fleetNodes    = 1000
	fleetInterval = 5 * time.Second
	fleetPeriod   = 30 * time.Second // measured

	catalogStreams = 10_000
	catalogShards  = 3
	resourceBatch  = 500
)

// BenchmarkHeartbeats has 1,000 nodes send heartbeats every five seconds to three
// instances, and tells what share of a CPU that costs them, and the database.
func BenchmarkHeartbeats(b *testing.B) {
	b.Run("raft", func(b *testing.B) {
		p := raftPlane(b, patientNodes...)
		benchHeartbeats(b, p)
	})
	b.Run("postgres", func(b *testing.B) {
		server := pgtest.StartServer(b, map[string]string{"fsync": "on"})
		p := newPlane(b)
		url := server.URL(b, "figures")
		for range 3 {
			p.instance(append([]string{"--postgres-url", url}, patientNodes...)...).launch()
		}
		p.begin()
		benchHeartbeats(b, p, server.PID())
	})
}

func benchHeartbeats(b *testing.B, p *plane, others ...int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	apis := make([]*apiclient.Client, len(p.urls))
	for n := range apis {
		apis[n] = newClient(b, p.urlFrom(n), p.operator)
	}
	var beats, failures atomic.Int64
	var group sync.WaitGroup
	ready := make(chan struct{}, fleetNodes)
	for n := range fleetNodes {
		group.Go(func() {
			api, id := apis[n%len(apis)], fmt.Sprintf("node-%d", n)
			_, err := api.RegisterNode(ctx, apiclient.Registration{
				NodeID: id, AdvertiseAddr: fmt.Sprintf("10.1.%d.%d:7000", n/250, n%250+1), Region: "local", Capacity: &model.Capacity{Weight: 1},
			})
			ready <- struct{}{}
			if err != nil {
				failures.Add(1)
				return
			}
			_ = sleep(ctx, fleetInterval*time.Duration(n)/fleetNodes)
			for ctx.Err() == nil {
				if _, err := api.Heartbeat(ctx, id, 0); err == nil {
					beats.Add(1)
				} else if ctx.Err() == nil {
					failures.Add(1)
				}
				_ = sleep(ctx, fleetInterval)
			}
		})
	}
	for range fleetNodes {
		<-ready
	}
	_ = sleep(ctx, fleetInterval)
	instances, rest := p.cpu(b), children(b, others...)
	before, began := beats.Load(), time.Now()
	_ = sleep(ctx, fleetPeriod)
	took := time.Since(began)
	b.ReportMetric(float64(beats.Load()-before)/took.Seconds(), "beats/s")
	total := 0.0
	for n, after := range p.cpu(b) {
		share := 100 * (after - instances[n]).Seconds() / took.Seconds()
		total += share
		b.Logf("instance %d: %.1f %% of a CPU", n+1, share)
	}
	b.ReportMetric(total, "instances-%cpu")
	b.ReportMetric(100*(children(b, others...)-rest).Seconds()/took.Seconds(), "database-%cpu")
	b.ReportMetric(float64(failures.Load()), "failures")
	cancel()
	group.Wait()
}

// cpu is what each instance has used.
func (p *plane) cpu(b *testing.B) []time.Duration {
	used := make([]time.Duration, len(p.instances))
	for n, i := range p.instances {
		used[n] = children(b, i.cmd.Process.Pid)
	}
	return used
}

// children is what processes and their children have used, in ticks of a
// hundredth of a second.
func children(b *testing.B, parents ...int) (used time.Duration) {
	b.Helper()
	if len(parents) == 0 {
		return 0
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		b.Skip("the use of other processes is read from /proc")
	}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		parent, _ := strconv.Atoi(fields[1])
		if !slices.Contains(parents, pid) && !slices.Contains(parents, parent) {
			continue
		}
		for _, at := range []int{11, 12} { // utime, stime
			ticks, _ := strconv.ParseInt(fields[at], 10, 64)
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}

// BenchmarkCatalog measures a cluster of 10,000 streams with three shards each:
// placing them, reading them over HTTP, how long a change takes to a broker, and
// how long that takes to start.
func BenchmarkCatalog(b *testing.B) {
	for name, open := range backends {
		b.Run(name, func(b *testing.B) { benchCatalog(b, open(b, patientNodes...)) })
	}
}

func benchCatalog(b *testing.B, p *plane) {
	broker := p.broker("b1")
	broker.start()
	ctx := b.Context()
	api, reader := p.client(p.admin), p.client(p.operator)
	began := time.Now()
	for from := 0; from < catalogStreams; from += resourceBatch {
		var specs []apiclient.StreamSpec
		for n := range resourceBatch {
			specs = append(specs, streamSpec(fmt.Sprintf("s%d", from+n), catalogShards, true))
		}
		_, err := api.CreateResources(ctx, inShop, specs, nil)
		must(b, err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "create-s")
	want := catalogStreams * catalogShards
	deadline := time.Now().Add(10 * time.Minute)
	for placed := 0; placed < want; {
		s, err := reader.AssignmentsSnapshot(ctx)
		must(b, err)
		if placed = len(s.Items); time.Now().After(deadline) {
			b.Fatalf("%d of %d shards are placed", placed, want)
		}
		_ = sleep(ctx, 50*time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "placed-s")
	for what, read := range map[string]func() error{
		"streams-snapshot-ms": func() error { _, err := reader.StreamsSnapshot(ctx); return err },
		"shards-snapshot-ms":  func() error { _, err := reader.AssignmentsSnapshot(ctx); return err },
		"plan-ms":             func() error { _, err := reader.Plan(ctx); return err },
	} {
		b.ReportMetric(median(b, 5, read), what)
	}
	// The broker opens the logs of what it is given beside all else.
	opened := time.Now()
	for before := children(b, broker.cmd.Process.Pid); ; {
		_ = sleep(ctx, time.Second)
		now := children(b, broker.cmd.Process.Pid)
		if now-before < 100*time.Millisecond {
			break
		}
		before = now
	}
	b.ReportMetric(time.Since(opened).Seconds(), "opened-s")
	// A change has arrived when the broker serves the stream.
	c := broker.dialWith(b, nil, client.WithReconnect(client.ReconnectPolicy{Attempts: 1})) // the broker counts, not the client's patience
	n := 0
	b.ReportMetric(median(b, 25, func() error {
		n++
		name := fmt.Sprintf("late-%d", n)
		if _, err := api.CreateStream(ctx, inShop, streamSpec(name, 1, false)); err != nil {
			return err
		}
		_, err := c.Publish(ctx, name, []byte("x"))
		for ; err != nil && ctx.Err() == nil; _, err = c.Publish(ctx, name, []byte("x")) {
			_ = sleep(ctx, time.Millisecond)
		}
		return err
	}), "create-to-publish-ms")
	for _, life := range []string{"start-ms", "start-alone-ms"} {
		broker.terminate()
		if life == "start-alone-ms" {
			for _, i := range p.instances {
				i.kill()
			}
		}
		b.ReportMetric(median(b, 1, func() error { broker.start(); return nil }), life)
	}
}

// median is that of the times that work takes, in milliseconds.
func median(b *testing.B, rounds int, work func() error) float64 {
	b.Helper()
	var took []time.Duration
	for range rounds {
		began := time.Now()
		must(b, work())
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return float64(took[len(took)/2]) / float64(time.Millisecond)
}
