package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

const (
	queueStream     = "tasks"
	queueGroup      = "workers"
	queuePublishers = 4
	queueWorkers    = 3
	// queueRound is how many records are published between two kills.
	queueRound = 200
	// queueVisibility is also how long the last claims of the dead may stand.
	queueVisibility = 2 * time.Second
)

// A queueCampaign is a group of worker processes on a node, with publishers.
type queueCampaign struct {
	// poisonEach makes every so manieth record of a publisher one that no
	// handler can finish.
	poisonEach int
	// attempts is how often a record is handed out.
	attempts uint32

	node    *node
	workers []*workerProcess
	diaries *diaries
	rng     *rand.Rand

	mu    sync.Mutex
	acked map[uint64]string // by the node, at these offsets
	allow atomic.Int64      // records that may be published

	cursor  uint64 // the group's, as last seen
	checked uint64 // below, every record is known to be done with
	letters map[uint64]bool
}

// TestQueueKills kills a node and the workers of a group at random, while
// records are published. Whatever the group calls finished was finished by a
// handler before, or given up after so many attempts as it may have; in the
// end that is every record there is, and what no handler can finish, and only
// that, is in the dead letters.
func TestQueueKills(t *testing.T) {
	// So many attempts that no record is given up for the kills alone.
	t.Run("tasks", func(t *testing.T) {
		t.Parallel()
		killQueue(t, &queueCampaign{poisonEach: 40, attempts: 10}, kills(t, 6))
	})
	t.Run("poison", func(t *testing.T) {
		t.Parallel()
		killQueue(t, &queueCampaign{poisonEach: 1, attempts: 3}, kills(t, 3))
	})
}

func killQueue(t *testing.T, q *queueCampaign, rounds int) {
	q.node = startNode(t, smallSegment, fmt.Sprintf("FELIX_GROUP_MAX_ATTEMPTS=%d", q.attempts))
	q.workers, q.diaries = make([]*workerProcess, queueWorkers), newDiaries(t)
	q.rng = rand.New(rand.NewPCG(4, uint64(q.poisonEach)))
	q.acked, q.letters = make(map[uint64]string), make(map[uint64]bool)
	for i := range q.workers {
		q.hire(t, i)
	}
	stop := q.publish(t)
	var nodes, workers int
	for round := range rounds {
		q.allow.Add(queueRound)
		q.awaitProgress(t, 20)
		time.Sleep(time.Duration(q.rng.IntN(200)) * time.Millisecond) // a random moment is the point
		// A worker, the node, or both.
		if round%3 != 1 {
			i := q.rng.IntN(queueWorkers)
			q.workers[i].kill(t)
			q.hire(t, i)
			workers++
		}
		if round%3 != 0 {
			q.node.kill(t)
			q.node.restart(t)
			nodes++
		}
		q.check(t)
	}
	stop()
	q.drain(t)
	for _, w := range q.workers {
		w.dismiss(t)
	}
	records, given := q.checkAll(t)
	t.Logf("%d kills of the node, %d of workers; %d records, %d of them given up", nodes, workers, records, given)
}

// hire starts a worker in a place: under the name of the one who was there,
// whose claims it gets at once, or without a name.
func (q *queueCampaign) hire(t *testing.T, place int) {
	t.Helper()
	j := job{
		Broker: q.node.Access(), Stream: queueStream, Group: queueGroup, Diary: q.diaries.next(),
		Handlers: 4, Batch: 16, Visibility: queueVisibility, Work: 3 * time.Millisecond, Retry: 20 * time.Millisecond,
	}
	if q.rng.IntN(2) == 0 {
		j.Name = fmt.Sprintf("place-%d", place)
	}
	q.workers[place] = startWorker(t, j)
}

// publish lets publishers run until stop is called.
func (q *queueCampaign) publish(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := q.node.dial(t, ctx, noticing)
	var group sync.WaitGroup
	for p := range queuePublishers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; {
				if q.allow.Add(-1) < 0 {
					q.allow.Add(1)
					sleep(ctx, 5*time.Millisecond)
					continue
				}
				kind := "task"
				if n%q.poisonEach == q.poisonEach/2 {
					kind = poison
				}
				payload := fmt.Sprintf("%s/%d/%d/", kind, p, n) + strings.Repeat("x", padding)
				n++
				ack, err := c.Publish(ctx, queueStream, []byte(payload))
				if err != nil {
					q.allow.Add(1) // the node is dead
					sleep(ctx, 5*time.Millisecond)
					continue
				}
				q.mu.Lock()
				q.acked[ack.Offset] = payload
				q.mu.Unlock()
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// awaitProgress waits until the workers have handled so many records more.
func (q *queueCampaign) awaitProgress(t *testing.T, records int) {
	t.Helper()
	from := q.diaries.handled
	within := time.Now().Add(patience)
	for {
		q.diaries.look(t)
		if q.diaries.handled >= from+records {
			return
		}
		if time.Now().After(within) {
			info, letters := q.ask(t)
			t.Fatalf("no progress: %d handled; the group is at %+v with %d dead letters\n%s", q.diaries.handled, info, len(letters), q.node.Said())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ask asks the node where the group is, and then for its dead letters.
func (q *queueCampaign) ask(t *testing.T) (client.GroupInfo, []uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := q.node.dial(t, ctx)
	defer c.Close()
	g := c.Group(queueStream, queueGroup)
	info, err := g.Describe(ctx, 0)
	if err != nil {
		t.Fatalf("describe: %v\n%s", err, q.node.Said())
	}
	letters, err := g.DeadLetters(ctx, 0)
	if err != nil {
		t.Fatalf("dead letters: %v\n%s", err, q.node.Said())
	}
	return info, letters
}

// check compares what the node says of the group with what the workers have
// written. The node is asked first: what it calls finished then was written
// down before.
func (q *queueCampaign) check(t *testing.T) client.GroupInfo {
	t.Helper()
	info, letters := q.ask(t)
	q.diaries.look(t)
	if info.Committed < q.cursor {
		t.Fatalf("the cursor went back from %d to %d", q.cursor, info.Committed)
	}
	q.cursor = info.Committed
	if !slices.IsSorted(letters) || len(slices.Compact(slices.Clone(letters))) != len(letters) {
		t.Fatalf("dead letters out of order or listed twice: %v", letters)
	}
	for _, offset := range letters {
		q.letters[offset] = true
	}
	if len(letters) != len(q.letters) {
		t.Fatalf("%d dead letters are listed, %d were before", len(letters), len(q.letters))
	}
	for ; q.checked < q.cursor; q.checked++ {
		if q.diaries.done[q.checked] == 0 && !q.letters[q.checked] {
			t.Fatalf("the cursor is at %d, and no handler has finished record %d: delivered %v", q.cursor, q.checked, q.diaries.deliveries[q.checked])
		}
	}
	q.diaries.checkAttempts(t, q.attempts)
	return info
}

// drain waits until the group has finished the log.
func (q *queueCampaign) drain(t *testing.T) {
	t.Helper()
	within := time.Now().Add(2 * patience)
	for {
		info := q.check(t)
		if info.HasCommitted && info.Committed == info.Tail && info.InFlight == 0 && info.Owed == 0 {
			return
		}
		if time.Now().After(within) {
			t.Fatalf("the group does not come to the end: %+v\n%s", info, q.node.Said())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// checkAll compares the log, from its beginning to its end, with what became
// of each record.
func (q *queueCampaign) checkAll(t *testing.T) (records, given int) {
	t.Helper()
	info := q.check(t)
	if info.DeadLetters != uint64(len(q.letters)) {
		t.Fatalf("%d dead letters are counted, %d listed", info.DeadLetters, len(q.letters))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sub, err := q.node.dial(t, ctx).Subscribe(ctx, queueStream, client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for offset := range info.Tail {
		event, err := sub.Next(ctx)
		if err != nil || event.Offset != offset {
			t.Fatalf("read offset %d: %d, %v", offset, event.Offset, err)
		}
		payload := string(event.Payload)
		if want, acked := q.acked[offset]; acked && payload != want {
			t.Fatalf("offset %d holds %.16s, acknowledged was %.16s", offset, payload, want)
		}
		delete(q.acked, offset)
		delivered := q.diaries.delivered(offset)
		if strings.HasPrefix(payload, poison+"/") {
			given++
			if !q.letters[offset] || q.diaries.done[offset] > 0 || delivered < 1 || delivered > int(q.attempts)+1 {
				t.Fatalf("poison at %d: dead letter %v, handled %d times, deliveries %v", offset, q.letters[offset], q.diaries.done[offset], q.diaries.deliveries[offset])
			}
			continue
		}
		if q.letters[offset] || q.diaries.done[offset] == 0 {
			t.Fatalf("record %d: dead letter %v, handled %d times, deliveries %v", offset, q.letters[offset], q.diaries.done[offset], q.diaries.deliveries[offset])
		}
	}
	for offset := range q.acked {
		t.Fatalf("a record was acknowledged at %d, and the log ends at %d", offset, info.Tail)
	}
	if given != len(q.letters) {
		t.Fatalf("%d dead letters, and %d records that cannot be finished", len(q.letters), given)
	}
	return int(info.Tail), given
}
