package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

// perKill is how many records are published for each life of the consumer.
const perKill = 60

// TestConsumerKills runs the consumer of the first example of the client's
// documentation, whose handler writes to a file, and kills it at random. The
// file has every record, at least once: none was finished before its handler
// returned. A handler that fails or panics gets its record again.
func TestConsumerKills(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := n.dial(t, ctx)
	g := c.Group("orders", "billing")
	rng := rand.New(rand.NewPCG(6, 7))
	d := newDiaries(t)
	consumer := job{
		Broker: n.Access(), Stream: "orders", Group: "billing",
		Visibility: 2 * time.Second, Work: time.Millisecond, Retry: 100 * time.Millisecond,
	}
	var failing, published uint64
	rounds := kills(t, 8)
	for range rounds {
		batch := make([][]byte, perKill)
		for i := range batch {
			kind := "order"
			switch i {
			case 7:
				kind = fails
			case 23:
				kind = panics
			}
			batch[i] = fmt.Appendf(nil, "%s/%d", kind, published)
			published++
		}
		failing += 2
		if _, err := c.PublishBatch(ctx, "orders", batch); err != nil {
			t.Fatal(err)
		}
		consumer.Diary = d.next()
		w := startWorker(t, consumer)
		await(t, func() bool {
			had := len(d.done)
			d.look(t)
			return len(d.done) > had
		})
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // a random moment is the point
		w.kill(t)
		info, err := g.Describe(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		d.look(t)
		for offset := range info.Committed {
			if d.done[offset] == 0 {
				t.Fatalf("the cursor is at %d, and the handler has not finished record %d", info.Committed, offset)
			}
		}
	}
	consumer.Diary = d.next()
	last := startWorker(t, consumer)
	var info client.GroupInfo
	await(t, func() bool {
		var err error
		if info, err = g.Describe(ctx, 0); err != nil {
			t.Fatal(err)
		}
		return info.Committed == published && info.InFlight == 0 && info.Owed == 0
	})
	last.dismiss(t)
	d.look(t)
	for offset := range published {
		if d.done[offset] == 0 {
			t.Errorf("no consumer has written record %d; delivered %v", offset, d.deliveries[offset])
		}
	}
	if info.DeadLetters != 0 {
		t.Errorf("%d records were given up", info.DeadLetters)
	}
	t.Logf("%d kills of the consumer, %d records, %d handlers failed of %d that were to", rounds, published, len(d.failed), failing)
	for offset := range d.failed {
		if d.delivered(offset) < 2 {
			t.Errorf("the handler failed on record %d and did not get it again", offset)
		}
	}
}

// await waits for a condition, patiently.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	within := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(within) {
			t.Fatal("it did not come to that")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
