package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/felixlog/felix/client"
)

// getRounds is how often the cache is read back, to tell how fast it answers.
const getRounds = 50

// putAgain is how long the cache's writer waits before it tries again.
const putAgain = 10 * time.Millisecond

// fillCache writes each record under its network.
func (d *Demo) fillCache(ctx context.Context, s *client.Subscription, cache *client.Cache, timing *timing) error {
	for range d.records {
		event, err := s.Next(ctx)
		if err != nil {
			return err
		}
		quake, err := parse(event.Payload)
		if err != nil {
			return err
		}
		sent := time.Now()
		if err := put(ctx, cache, quake.Net, event.Payload); err != nil {
			return err
		}
		took := time.Since(sent)
		d.update(func() {
			d.cached++
			d.latest[quake.Net] = quake
			timing.puts = append(timing.puts, took)
		})
	}
	return nil
}

// put writes an entry, again where the kill left the outcome open: the same
// value twice is the same entry.
func put(ctx context.Context, cache *client.Cache, key string, value []byte) error {
	for {
		err := cache.Put(ctx, key, value)
		if err == nil || ctx.Err() != nil || !client.IsRetryable(err) && !client.IsOutcomeUnknown(err) {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(putAgain)); err != nil {
			return err
		}
	}
}

// readBack reads every network's entry from the cache, several times, and
// returns what was held and how long each get took.
func (d *Demo) readBack(ctx context.Context, cache *client.Cache) (held map[string][]byte, gets []time.Duration, err error) {
	networks := slices.Sorted(maps.Keys(d.expected()))
	held = make(map[string][]byte)
	for range getRounds {
		for _, network := range networks {
			sent := time.Now()
			value, found, err := cache.Get(ctx, network)
			if err != nil {
				return nil, nil, fmt.Errorf("read %s from the cache: %w", network, err)
			}
			gets = append(gets, time.Since(sent))
			if found {
				held[network] = value
			}
		}
	}
	return held, gets, nil
}

// expected is the last record of every network.
func (d *Demo) expected() map[string][]byte {
	last := make(map[string][]byte)
	for _, record := range d.records {
		if quake, err := parse(record); err == nil {
			last[quake.Net] = record
		}
	}
	return last
}
