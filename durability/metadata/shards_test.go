package metadata

import (
	"fmt"
	"maps"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// awaitShards waits until so many shards are assigned, and led so.
func (p *plane) awaitShards(t *testing.T, total int, leads map[string]int) {
	t.Helper()
	eventually(t, "the shards", func() error {
		ctx, cancel := bounded(t)
		defer cancel()
		all, err := p.client(p.operator).Assignments(ctx, "")
		if err != nil {
			return err
		}
		got := make(map[string]int)
		for _, a := range all {
			got[a.Leader]++
		}
		if len(all) != total || !maps.Equal(got, leads) {
			return fmt.Errorf("%d shards are led as %v, want %d as %v", len(all), got, total, leads)
		}
		return nil
	})
}

// awaitNodes waits until so many brokers are live.
func (p *plane) awaitNodes(t *testing.T, live int) {
	t.Helper()
	eventually(t, "the brokers", func() error {
		ctx, cancel := bounded(t)
		defer cancel()
		all, err := p.client(p.operator).Nodes(ctx, apiclient.NodeFilter{Lifecycle: model.Live})
		if err == nil && len(all) != live {
			err = fmt.Errorf("%d are live, want %d", len(all), live)
		}
		return err
	})
}

// leaders says who leads each shard of a stream.
func (p *plane) leaders(t *testing.T, stream string) map[uint32]string {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	all, err := p.client(p.operator).Assignments(ctx, "")
	must(t, err)
	got := make(map[uint32]string)
	for _, a := range all {
		if a.Stream == stream {
			got[a.Shard] = a.Leader
		}
	}
	return got
}

// planned says what the next placement pass would do to a stream.
func (p *plane) planned(t *testing.T, stream string) map[uint32]apiclient.PlannedShard {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	plan, err := p.client(p.operator).Plan(ctx)
	must(t, err)
	got := make(map[uint32]apiclient.PlannedShard)
	for _, s := range plan.Items {
		if s.Stream == stream {
			got[s.Shard] = s
		}
	}
	return got
}
