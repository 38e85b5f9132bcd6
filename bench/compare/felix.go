package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/felixlog/felix/bench/internal/felix"
	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/proc"
)

// A felixBroker is how a case configures the broker under test. Everything
// else is as a user gets it.
type felixBroker struct {
	// durable keeps messages on disk, synced before they are acknowledged;
	// otherwise they are in memory.
	durable bool
	// poll lets the receive loops of broker and client look again before
	// they park.
	poll time.Duration
	// settings are variables of the broker's environment.
	settings []string
	// allowed is what those settings let it hold, in bytes.
	allowed uint64
}

const (
	stallQueue  = 4 << 20  // bytes waiting for one stalled subscriber
	stallRing   = 4 << 20  // bytes kept for replay
	stallBudget = 16 << 20 // bytes of publishes of one connection, and its window
	// stallGC is the collector's percentage: garbage may come on top of what
	// is held, as much again at 100.
	stallGC = 100
)

// stallingBroker has bounds that a run of seconds exceeds many times.
func stallingBroker() felixBroker {
	held := uint64(subscribers*stallQueue + stallRing + 2*stallBudget)
	return felixBroker{
		settings: []string{
			fmt.Sprintf("FELIX_SUB_QUEUE_MAX_BYTES=%d", stallQueue),
			fmt.Sprintf("FELIX_STREAM_RING_BYTES=%d", stallRing),
			fmt.Sprintf("FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES=%d", stallBudget),
			fmt.Sprintf("GOGC=%d", stallGC),
		},
		allowed: held * (100 + stallGC) / 100,
	}
}

// losslessBroker holds publishers back for a subscriber that is behind.
func losslessBroker() felixBroker {
	return felixBroker{settings: []string{"FELIX_SUB_QUEUE_POLICY=block"}}
}

// onFelix runs client against a broker of the binary under test.
func onFelix(broker felixBroker, client string, spec func(b *bench, t felix.Target, s serving) any) contender {
	return contender{start: func(ctx context.Context, b *bench, cpu int) (serving, string, any, error) {
		s, target, err := b.startFelix(ctx, broker, cpu)
		if err != nil {
			return serving{}, "", nil, err
		}
		return s, client, spec(b, target, s), nil
	}}
}

// startFelix starts felix dev on ports of the kernel's choice and waits until
// it accepts clients.
func (b *bench) startFelix(ctx context.Context, broker felixBroker, cpu int) (serving, felix.Target, error) {
	dir, remove, err := b.scratch("felix")
	if err != nil {
		return serving{}, felix.Target{}, err
	}
	args := []string{"dev", "--json", "--no-context", "--port", "0", "--http", "0"}
	if broker.durable {
		args = append(args, "--data", dir)
	} else {
		args = append(args, "--memory")
	}
	p, err := b.spawner.Start(proc.Spec{Path: b.felix, CPU: cpu, Args: args, Env: broker.environ(os.Environ())})
	if err != nil {
		remove()
		return serving{}, felix.Target{}, err
	}
	target, err := reach(ctx, p)
	if err != nil {
		p.Stop()
		remove()
		return serving{}, felix.Target{}, err
	}
	target.Poll = broker.poll
	return serving{process: p, close: remove}, target, nil
}

// reach reads what felix dev says when it is ready.
func reach(ctx context.Context, p *proc.Process) (felix.Target, error) {
	var ready struct {
		Addr      string `json:"addr"`
		CAFile    string `json:"ca_file"`
		TokenFile string `json:"token_file"`
		Tenant    string `json:"tenant"`
		Namespace string `json:"namespace"`
		AdminURL  string `json:"admin_url"`
	}
	if err := p.Document(ctx, &ready); err != nil {
		return felix.Target{}, err
	}
	if ready.Tenant != frames.Tenant || ready.Namespace != frames.Namespace {
		return felix.Target{}, fmt.Errorf("felix dev serves %s/%s, the frames of the references name %s/%s",
			ready.Tenant, ready.Namespace, frames.Tenant, frames.Namespace)
	}
	token, err := os.ReadFile(ready.TokenFile)
	if err != nil {
		return felix.Target{}, fmt.Errorf("read token: %w", err)
	}
	return felix.Target{
		Addr: ready.Addr, CAFile: ready.CAFile, Tenant: ready.Tenant, Token: strings.TrimSpace(string(token)), AdminURL: ready.AdminURL,
	}, nil
}

// environ is the environment of the broker: the given one without settings
// of Felix or of the Go runtime that somebody may have left there.
func (f felixBroker) environ(base []string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "FELIX_") || name == "GOGC" || name == "GOMEMLIMIT"
	})
	env = append(env, "FELIX_LOG=warn", fmt.Sprintf("FELIX_UDP_POLL_US=%d", f.poll.Microseconds()))
	return append(env, f.settings...)
}
