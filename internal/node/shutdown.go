package node

import (
	"context"
	"fmt"
	"time"

	"github.com/felixlog/felix/internal/node/admin"
)

// Shutdown stops the node in order (broker 12.2): not ready, shards handed over,
// no new connections, clients' grace, queued publishes, subscriptions,
// connections, logs, deregistered. What ctx or the drain budget cuts off is
// logged by name; the error says so.
func (n *Node) Shutdown(ctx context.Context) error {
	n.stopOnce.Do(func() {
		n.err = n.shutdown(ctx)
		close(n.done)
	})
	<-n.done
	return n.err
}

func (n *Node) shutdown(ctx context.Context) error {
	n.readiness.Reach(admin.Draining)
	if n.beforeDrain != nil {
		n.beforeDrain(ctx)
	}
	start := time.Now()
	n.preDrain(ctx)
	forced := n.drain(ctx)
	n.closeServing()
	n.accepting.Wait()
	err := n.report(time.Since(start), forced)
	if n.afterDrain != nil {
		// The budget may be gone; leaving in order is still worth a moment.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
		n.afterDrain(after)
		cancel()
	}
	n.closeAdmin()
	return err
}

// leaveGrace is how long the node may take to tell others that it has gone.
const leaveGrace = 5 * time.Second

// drain ends the clients' work within the drain budget, and names what it had to
// cut off.
func (n *Node) drain(ctx context.Context) (forced []string) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Shutdown.Drain)
	defer cancel()
	for _, l := range n.listeners {
		if err := l.StopAccepting(); err != nil {
			n.log.Warn("stop accepting", "addr", l.Addr().String(), "error", err)
		}
	}
	if cut := n.sessions.Drain(ctx, max(n.cfg.Shutdown.Drain/2, time.Second)); cut > 0 {
		forced = append(forced, "connections")
	}
	if err := n.core.Drain(ctx); err != nil {
		forced = append(forced, "publishes")
	}
	return forced
}

// report logs and counts how the drain went.
func (n *Node) report(took time.Duration, forced []string) error {
	elapsed := took.Milliseconds()
	n.metrics.Process.DrainDuration.Set(float64(elapsed))
	for _, subsystem := range forced {
		n.metrics.Process.DrainForced(subsystem)
	}
	if len(forced) > 0 {
		n.log.Warn("drain deadline expired", "elapsed_ms", elapsed, "unfinished", forced)
		return fmt.Errorf("drain cut off after %d ms: %v unfinished", elapsed, forced)
	}
	n.log.Info("drain complete", "elapsed_ms", elapsed)
	return nil
}

// preDrain goes on serving for a while after /ready says that the node is
// leaving, so that a load balancer notices before clients do.
func (n *Node) preDrain(ctx context.Context) {
	select {
	case <-time.After(n.cfg.Shutdown.PreDrain):
	case <-ctx.Done():
	}
}

// closeAll ends whatever is open, the HTTP listener last.
func (n *Node) closeAll() {
	n.closeServing()
	n.closeAdmin()
}

// closeServing ends what serves clients: the logs when nobody writes any more.
func (n *Node) closeServing() {
	if n.steps != nil {
		n.steps.Stop()
	}
	if n.cancel != nil {
		n.cancel()
	}
	for _, l := range n.listeners {
		if err := l.Close(); err != nil {
			n.log.Warn("close listener", "error", err)
		}
	}
	n.core.Close()
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			n.log.Error("close storage", "error", err)
		}
	}
}

func (n *Node) closeAdmin() {
	if n.http == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	if err := n.http.Shutdown(ctx); err != nil {
		n.log.Warn("close HTTP listener", "error", err)
	}
}

// adminGrace is how long a scrape in progress may take at the very end.
const adminGrace = time.Second
