package durability

import (
	"context"
	"testing"
	"time"
)

// TestCrashLoopEnds kills the node and the worker whenever the worker has
// begun with a record. The record is given up all the same, after as many
// deliveries as it may have, and one more: the count of the first may be lost.
func TestCrashLoopEnds(t *testing.T) {
	t.Parallel()
	const most = 3
	n := startNode(t, "FELIX_GROUP_MAX_ATTEMPTS=3")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if _, err := n.dial(t, ctx).Publish(ctx, queueStream, []byte(poison+"/")); err != nil {
		t.Fatal(err)
	}
	d := newDiaries(t)
	for lives := 0; ; lives++ {
		w := startWorker(t, job{
			Broker: n.Access(), Stream: queueStream, Group: queueGroup, Diary: d.next(),
			Name: "looping", Visibility: time.Minute, Work: time.Hour,
		})
		g := n.dial(t, ctx).Group(queueStream, queueGroup)
		before, given := d.delivered(0), false
		await(t, func() bool {
			letters, err := g.DeadLetters(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			d.look(t)
			given = len(letters) == 1 && letters[0] == 0
			return given || d.delivered(0) > before
		})
		if given {
			break
		}
		if lives > most+1 {
			t.Fatalf("delivered %v, and not given up", d.deliveries[0])
		}
		w.kill(t)
		n.kill(t)
		n.restart(t)
	}
	d.look(t)
	if delivered := d.delivered(0); delivered < most || delivered > most+1 {
		t.Errorf("given up after %d deliveries: %v", delivered, d.deliveries[0])
	}
	d.checkAttempts(t, most)
	info, err := n.dial(t, ctx).Group(queueStream, queueGroup).Describe(ctx, 0)
	if err != nil || info.Committed != 1 || info.DeadLetters != 1 || info.InFlight != 0 || info.Owed != 0 {
		t.Errorf("the group is at %+v, error %v", info, err)
	}
}
