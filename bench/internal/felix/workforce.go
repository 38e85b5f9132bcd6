package felix

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/client"
)

// A workforce is the clients of workers that share a group.
type workforce struct {
	target  Target
	clients []*client.Client
	rounds  int
}

// hire dials a client for each of n workers and fills the stream with the
// backlog.
func (t Target) hire(ctx context.Context, n, records, batch, size int) (*workforce, error) {
	w := &workforce{target: t}
	for range n {
		c, err := t.dial(ctx)
		if err != nil {
			w.close()
			return nil, err
		}
		w.clients = append(w.clients, c)
	}
	if err := fill(ctx, w.clients[0], records, batch, size); err != nil {
		w.close()
		return nil, fmt.Errorf("fill stream: %w", err)
	}
	return w, nil
}

func (w *workforce) close() {
	for _, c := range w.clients {
		_ = c.Close() // the run is over
	}
}

// open makes a group that nobody has used, from the first record on, and
// returns a handle of it on each client.
func (w *workforce) open(ctx context.Context) ([]*client.Group, error) {
	w.rounds++
	name := fmt.Sprintf("workers-%d", w.rounds)
	groups := make([]*client.Group, len(w.clients))
	for i, c := range w.clients {
		groups[i] = c.Group(frames.Stream, name)
	}
	if _, err := groups[0].Create(ctx, shard, client.Earliest()); err != nil {
		return nil, fmt.Errorf("create group: %w", err)
	}
	// Each client finds the way to the group before the clock runs, as a
	// consumer is looked up on each connection of a reference.
	for _, g := range groups {
		if _, err := g.Describe(ctx, shard); err != nil {
			return nil, fmt.Errorf("describe group: %w", err)
		}
	}
	return groups, nil
}

// settle holds what the broker says against what the workers did: taken
// records handed out, the first acked of them finished. Then it deletes the
// group.
func (w *workforce) settle(ctx context.Context, g *client.Group, records int, taken, acked uint64) error {
	info, err := g.Describe(ctx, shard)
	if err != nil {
		return fmt.Errorf("describe group: %w", err)
	}
	if info.Tail != uint64(records) || info.HasHighWater && info.HighWater != taken {
		return fmt.Errorf("%d of %d records taken, the broker has handed out %d of %d", taken, records, info.HighWater, info.Tail)
	}
	if info.Committed != acked || info.InFlight != taken-acked || info.Owed != 0 || info.DeadLetters != 0 {
		return fmt.Errorf("%d of %d records acknowledged; the broker has finished %d, %d are in flight, %d owed, %d given up",
			acked, taken, info.Committed, info.InFlight, info.Owed, info.DeadLetters)
	}
	if _, err := g.Delete(ctx, shard); err != nil {
		return fmt.Errorf("delete group: %w", err)
	}
	return nil
}
