package felix

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// A CacheSpec is a run of gets or puts on one cache.
type CacheSpec struct {
	Target   Target         `json:"target"`
	Phases   measure.Phases `json:"phases"`
	InFlight int            `json:"in_flight"`
	Put      bool           `json:"put"`
	Value    int            `json:"value_bytes"`
	Keys     int            `json:"keys"`
}

// Cache keeps requests in flight, all on one stream, against a cache that
// holds every key.
func Cache(ctx context.Context, spec CacheSpec) (measure.Result, error) {
	c, err := spec.Target.dial(ctx, client.WithPools(client.Pools{CacheConns: 1, CacheStreams: 1}))
	if err != nil {
		return measure.Result{}, err
	}
	defer c.Close()
	cache := c.Cache(frames.Cache)
	keys := measure.NewKeys(spec.Keys)
	value := make([]byte, spec.Value)
	for _, k := range keys {
		if err := cache.Put(ctx, k, value); err != nil {
			return measure.Result{}, fmt.Errorf("fill cache: %w", err)
		}
	}
	walk := keys.Walk(spec.InFlight)
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.Value, func(ctx context.Context, w int) error {
		key := walk.Next(w)
		if spec.Put {
			return cache.Put(ctx, key, value)
		}
		got, ok, err := cache.Get(ctx, key)
		if err != nil {
			return err
		}
		if !ok || len(got) != spec.Value {
			return fmt.Errorf("get %s: found %v, %d bytes, want %d", key, ok, len(got), spec.Value)
		}
		return nil
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "%d in flight on 1 stream", spec.InFlight)
	return r, nil
}
