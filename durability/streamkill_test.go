package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

const (
	publisherCount = 32
	clientCount    = 4
	// padding makes records large enough for segments to fill between kills.
	padding = 200
	// smallSegment makes a log of many segments out of seconds of work.
	smallSegment = "FELIX_DURABLE_SEGMENT_BYTES=65536"
)

// A ledger is what publishers know: which record was acknowledged at which
// offset, and how far each of them had come.
type ledger struct {
	mu     sync.Mutex
	acked  map[uint64]string
	unsure map[string]bool // sent, and nothing more is known
}

func record(publisher, n int) string {
	return fmt.Sprintf("%d/%d/", publisher, n) + strings.Repeat("x", padding)
}

// TestKillLosesNothingAcknowledged kills a node under 32 publishers, again and
// again, and looks for every acknowledged record at its offset, in order, no
// offset twice, and no record that nobody sent.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	for mode, everyday := range map[string]int{"on_commit": 6, "periodic": 2, "none": 2} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			killStream(t, kills(t, everyday), smallSegment, "FELIX_DURABLE_FSYNC_MODE="+mode)
		})
	}
}

func killStream(t *testing.T, kills int, settings ...string) {
	n := startNode(t, settings...)
	l := &ledger{acked: make(map[uint64]string), unsure: make(map[string]bool)}
	rng := rand.New(rand.NewPCG(1, uint64(kills)))
	next := make([]int, publisherCount)
	var seen uint64 // offsets below are checked
	order := make([]int, publisherCount)
	for i := range order {
		order[i] = -1
	}
	for round := range kills {
		if round > 0 {
			n.restart(t)
		}
		before := len(l.acked)
		publishUntilKilled(t, n, l, next, time.Duration(20+rng.IntN(300))*time.Millisecond)
		if len(l.acked) == before {
			t.Fatal("nothing was acknowledged before the kill")
		}
		n.restart(t)
		seen = l.check(t, n, seen, order)
		n.kill(t)
	}
	if uint64(len(l.acked)) > seen {
		t.Fatalf("%d records acknowledged, %d in the log", len(l.acked), seen)
	}
	t.Logf("%d kills, %d records acknowledged, %d in the log", kills, len(l.acked), seen)
}

// publishUntilKilled lets publishers run for a while, then kills the node
// under them.
func publishUntilKilled(t *testing.T, n *node, l *ledger, next []int, after time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	clients := make([]*client.Client, clientCount)
	for i := range clients {
		clients[i] = n.dial(t, ctx)
	}
	first := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for p := range publisherCount {
		group.Go(func() {
			for ctx.Err() == nil {
				payload := record(p, next[p])
				next[p]++
				l.mu.Lock()
				l.unsure[payload] = true
				l.mu.Unlock()
				ack, err := clients[p%clientCount].Publish(ctx, "orders", []byte(payload))
				if err != nil {
					return
				}
				l.mu.Lock()
				offset, ok := ack.Offset, ack.HasOffset
				if was, taken := l.acked[offset]; !ok || taken {
					t.Errorf("record %.12s was acknowledged at %d (%v), where %.12s is", payload, offset, ok, was)
				}
				l.acked[offset] = payload
				delete(l.unsure, payload)
				l.mu.Unlock()
				once.Do(func() { close(first) })
			}
		})
	}
	select {
	case <-first:
	case <-ctx.Done():
		t.Fatal("no publish was acknowledged")
	}
	time.Sleep(after) // a random moment is the point
	n.kill(t)
	stop()
	group.Wait()
	for _, c := range clients {
		c.Close()
	}
}

// check reads the log from offset from to its end and returns the end.
func (l *ledger) check(t *testing.T, n *node, from uint64, order []int) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := n.dial(t, ctx)
	defer c.Close()
	// A marker that is acknowledged is the end of what there is to read.
	marker, err := c.Publish(ctx, "orders", []byte("marker"))
	if err != nil {
		t.Fatalf("publish after the restart: %v\n%s", err, n.Said())
	}
	sub, err := c.Subscribe(ctx, "orders", client.From(client.Offset(from)))
	if err != nil {
		t.Fatalf("subscribe after the restart: %v\n%s", err, n.Said())
	}
	defer sub.Close()
	for offset := from; offset <= marker.Offset; offset++ {
		event, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("read offset %d: %v", offset, err)
		}
		payload := string(event.Payload)
		if event.Offset != offset {
			t.Fatalf("offset %d follows %d", event.Offset, offset)
		}
		want, acked := l.acked[offset]
		if acked && payload != want {
			t.Fatalf("offset %d holds %.12s, acknowledged was %.12s", offset, payload, want)
		}
		if payload == "marker" {
			continue
		}
		if !acked && !l.unsure[payload] {
			t.Fatalf("offset %d holds %.12s, which nobody sent or which is elsewhere, too", offset, payload)
		}
		delete(l.unsure, payload)
		var publisher, number int
		if _, err := fmt.Sscanf(payload, "%d/%d/", &publisher, &number); err != nil {
			t.Fatalf("offset %d: %q: %v", offset, payload, err)
		}
		if number <= order[publisher] {
			t.Fatalf("offset %d: record %d of publisher %d comes after its record %d", offset, number, publisher, order[publisher])
		}
		order[publisher] = number
	}
	for offset, payload := range l.acked {
		if offset > marker.Offset {
			t.Fatalf("%.12s was acknowledged at %d, and the log ends at %d", payload, offset, marker.Offset)
		}
	}
	return marker.Offset + 1
}
