package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

const (
	cacheWriters  = 8
	keysPerWriter = 25
	// valueBytes makes overwrites fill the log, so that compaction runs all
	// the time.
	valueBytes = 2048
)

// A keyState is what its one writer knows of a key: the last write that was
// acknowledged, and the one behind it whose fate is unknown, if any.
type keyState struct {
	acked, pending write
	unsure         bool
}

type write struct {
	n       int // 0: never written
	deleted bool
}

func (w write) value(key string) string {
	v := make([]byte, valueBytes)
	copy(v, fmt.Sprintf("%s=%d;", key, w.n))
	return string(v)
}

// TestKillLosesNoAcknowledgedCacheWrite overwrites and deletes keys without
// pause, kills the node, and reads every key: it holds the last acknowledged
// write, or the one that was under way; what was deleted stays deleted.
func TestKillLosesNoAcknowledgedCacheWrite(t *testing.T) {
	t.Parallel()
	n := startNode(t, "FELIX_DURABLE_SEGMENT_BYTES=262144")
	rng := rand.New(rand.NewPCG(2, 3))
	states := make([]map[string]*keyState, cacheWriters)
	for w := range states {
		states[w] = make(map[string]*keyState)
		for k := range keysPerWriter {
			states[w][fmt.Sprintf("w%d-k%d", w, k)] = &keyState{}
		}
	}
	number := make([]int, cacheWriters)
	rounds := kills(t, 5)
	for round := range rounds {
		if round > 0 {
			n.restart(t)
		}
		writeUntilKilled(t, n, states, number, time.Duration(100+rng.IntN(400))*time.Millisecond)
		n.restart(t)
		checkKeys(t, n, states)
		n.kill(t)
	}
	total := 0
	for _, n := range number {
		total += n
	}
	t.Logf("%d kills, %d writes", rounds, total)
}

func writeUntilKilled(t *testing.T, n *node, states []map[string]*keyState, number []int, after time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	c := n.dial(t, ctx)
	defer c.Close()
	cache := c.Cache("latest")
	var group sync.WaitGroup
	first := make(chan struct{})
	var once sync.Once
	for w, keys := range states {
		group.Go(func() {
			for ctx.Err() == nil {
				for key, s := range keys {
					number[w]++
					next := write{n: number[w], deleted: number[w]%7 == 0}
					s.pending, s.unsure = next, true
					var err error
					if next.deleted {
						_, _, err = cache.Delete(ctx, key)
					} else {
						err = cache.Put(ctx, key, []byte(next.value(key)))
					}
					if err != nil {
						return
					}
					s.acked, s.unsure = next, false
					once.Do(func() { close(first) })
				}
			}
		})
	}
	select {
	case <-first:
	case <-ctx.Done():
		t.Fatal("no write was acknowledged")
	}
	time.Sleep(after) // a random moment is the point
	n.kill(t)
	stop()
	group.Wait()
}

func checkKeys(t *testing.T, n *node, states []map[string]*keyState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := n.dial(t, ctx)
	defer c.Close()
	cache := c.Cache("latest")
	for _, keys := range states {
		for key, s := range keys {
			value, found, err := cache.Get(ctx, key)
			if err != nil {
				t.Fatalf("get %s: %v\n%s", key, err, n.Said())
			}
			switch {
			case s.holds(key, s.acked, value, found):
			case s.unsure && s.holds(key, s.pending, value, found):
				s.acked = s.pending
			default:
				t.Fatalf("key %s holds %.20q (%v); acknowledged was %+v, under way %+v (%v)", key, value, found, s.acked, s.pending, s.unsure)
			}
			s.unsure = false
		}
	}
}

func (s *keyState) holds(key string, w write, value []byte, found bool) bool {
	if w.n == 0 || w.deleted {
		return !found
	}
	return found && string(value) == w.value(key)
}

// TestExpiryOutlivesAKill: a deadline is absolute and on disk.
func TestExpiryOutlivesAKill(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cache := n.dial(t, ctx).Cache("sessions")
	const ttl = 700 * time.Millisecond
	sent := time.Now()
	if err := cache.Put(ctx, "brief", []byte("x"), client.WithTTL(ttl)); err != nil {
		t.Fatal(err)
	}
	if err := cache.Put(ctx, "long", []byte("y"), client.WithTTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	acked := time.Now()
	n.kill(t)
	n.restart(t)
	cache = n.dial(t, ctx).Cache("sessions")
	for {
		_, found, err := cache.Get(ctx, "brief")
		now := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			if now.Sub(sent) < ttl {
				t.Fatalf("the entry was gone %v after its put, with a TTL of %v", now.Sub(sent), ttl)
			}
			break
		}
		if now.Sub(acked) > ttl+patience/2 {
			t.Fatal("the entry did not expire")
		}
	}
	if value, found, err := cache.Get(ctx, "long"); err != nil || !found || string(value) != "y" {
		t.Fatalf("the long-lived entry: %q, %v, %v", value, found, err)
	}
}
