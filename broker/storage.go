package broker

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/shardlog"
)

// streamLogs opens the logs of durable streams in the store.
type streamLogs struct{ store *storage.Store }

func (l streamLogs) OpenLog(ctx context.Context, name stream.Name, shard uint32, o stream.LogOptions) (*shardlog.Log, error) {
	key := storage.Key{Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, Shard: shard}
	return l.store.OpenLog(ctx, storage.Streams, key, storage.LogOptions{
		Retention:  o.Retention,
		UID:        o.UID,
		Producers:  true,
		AfterRound: o.AfterRound,
		Background: o.Background,
	})
}

// Opening counts the shards of durable streams by how far they are.
type Opening struct {
	// Shards are to be served here, of which Opening wait for their logs and Refused
	// have none because it was refused; the others serve.
	Shards, Opening, Refused int
}

// Opening counts the shards of durable streams.
func (b *Broker) Opening() Opening {
	var o Opening
	for _, s := range b.Streams() {
		if !s.Options().Durable {
			continue
		}
		for i := range s.Shards() {
			if !s.Shard(i).Active() {
				continue // not served here
			}
			o.Shards++
			switch s.Shard(i).Status().State {
			case stream.BeingOpened:
				o.Opening++
			case stream.Refused:
				o.Refused++
			}
		}
	}
	return o
}

// Ready waits until the log of every shard registered now is open or refused.
// It returns the cause of ctx if that ends first.
func (b *Broker) Ready(ctx context.Context) error {
	for _, s := range b.Streams() {
		for i := range s.Shards() {
			if s.Shard(i).Ready(ctx) != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// producerIDs gives out the ids of idempotent producers.
type producerIDs struct {
	mu     sync.Mutex
	random func() uint64
}

// NewProducerID is 64 random bits that name an idempotent producer (wire 9.6);
// never 0.
func (b *Broker) NewProducerID() uint64 {
	p := &b.ids
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random == nil {
		p.random = b.cfg.Random
	}
	if p.random == nil {
		now := uint64(b.clock.Now().UnixNano())
		p.random = rand.New(rand.NewPCG(now, ^now)).Uint64
	}
	for {
		if id := p.random(); id != 0 {
			return id
		}
	}
}
