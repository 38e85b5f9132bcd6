package natsref

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/felixlog/felix/bench/internal/measure"
)

// A KVSpec is a run of gets or puts on one bucket.
type KVSpec struct {
	Target   Target         `json:"target"`
	Phases   measure.Phases `json:"phases"`
	InFlight int            `json:"in_flight"`
	// Conns is how many connections the requests in flight are spread over.
	Conns int  `json:"conns"`
	Put   bool `json:"put"`
	// File keeps the bucket on disk instead of in memory.
	File  bool `json:"file"`
	Value int  `json:"value_bytes"`
	Keys  int  `json:"keys"`
}

// KV keeps requests in flight against a bucket that holds every key.
func KV(ctx context.Context, spec KVSpec) (measure.Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	buckets := make([]jetstream.KeyValue, spec.Conns)
	for i := range buckets {
		nc, err := spec.Target.connect(fail)
		if err != nil {
			return measure.Result{}, err
		}
		defer nc.Close()
		if buckets[i], err = bucket(ctx, nc, spec, i == 0); err != nil {
			return measure.Result{}, err
		}
	}
	keys := measure.NewKeys(spec.Keys)
	value := make([]byte, spec.Value)
	for _, k := range keys {
		if _, err := buckets[0].Put(ctx, k, value); err != nil {
			return measure.Result{}, fmt.Errorf("fill bucket: %w", err)
		}
	}
	walk := keys.Walk(spec.InFlight)
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.Value, func(ctx context.Context, w int) error {
		b, key := buckets[w%len(buckets)], walk.Next(w)
		if spec.Put {
			_, err := b.Put(ctx, key, value)
			return err
		}
		e, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		if len(e.Value()) != spec.Value {
			return fmt.Errorf("get %s: %d bytes, want %d", key, len(e.Value()), spec.Value)
		}
		return nil
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "%d in flight on %d connections", spec.InFlight, spec.Conns)
	return r, nil
}

// bucket opens the bucket of the run, making it on the first connection.
func bucket(ctx context.Context, nc *nats.Conn, spec KVSpec, create bool) (jetstream.KeyValue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open jetstream: %w", err)
	}
	if !create {
		return js.KeyValue(ctx, subject)
	}
	storage := jetstream.MemoryStorage
	if spec.File {
		storage = jetstream.FileStorage
	}
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: subject, History: 1, Storage: storage})
	if err != nil {
		return nil, fmt.Errorf("create bucket: %w", err)
	}
	return kv, nil
}
