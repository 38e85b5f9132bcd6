package controlplane

import (
	"context"
	"time"

	"github.com/felixlog/felix/internal/node/controlplane/mirror"
)

// Drain hands over what the broker leads before it stops serving (broker 12.2,
// step 2). It asks the control plane to drain the node, and waits until the
// broker leads nothing that can go elsewhere, the handoff timeout is over, or
// ctx ends. A durable shard with one copy cannot go: it is served by this broker
// again when it comes back. There is nothing to wait for where the broker leads
// nothing, nobody else could take it, or the control plane is silent.
func (a *Agent) Drain(ctx context.Context) {
	if a.member == nil || !a.member.Registered() {
		return
	}
	leads := a.mirror.Leads()
	if len(leads) == 0 || a.o.HandoffTimeout <= 0 {
		return
	}
	if !a.directory.others() {
		a.o.Logger.Info("shards stay: no other broker can take them", "shards", len(leads))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.HandoffTimeout)
	defer cancel()
	began := time.Now()
	if err := a.member.Drain(ctx, a.o.NodeID); err != nil {
		a.o.Logger.Warn("the control plane was asked to drain this node and did not; stopping without", "error", err)
		return
	}
	left := a.handedOver(ctx)
	a.o.Logger.Info("handed over", "led", len(leads), "left", left, "elapsed_ms", time.Since(began).Milliseconds())
}

// handedOver waits, and counts what is led still.
func (a *Agent) handedOver(ctx context.Context) int {
	for {
		passed := a.mirror.Passed()
		leads := a.mirror.Leads()
		if movable(leads) == 0 {
			return len(leads)
		}
		select {
		case <-passed:
		case <-ctx.Done():
			return len(leads)
		}
	}
}

func movable(leads []mirror.Lead) int {
	n := 0
	for _, l := range leads {
		if l.Movable {
			n++
		}
	}
	return n
}

// Leave says good-bye to the control plane: the node has stopped on purpose
// (broker 12.2, step 7).
func (a *Agent) Leave(ctx context.Context) {
	if a.member == nil {
		return
	}
	if err := a.member.Leave(ctx, a.o.NodeID); err != nil {
		a.o.Logger.Warn("the control plane was not told that this node leaves; it will find out", "error", err)
	}
}
