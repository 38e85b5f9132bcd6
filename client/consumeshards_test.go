package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestConsumeAllShards: every shard, and those that come later.
func TestConsumeAllShards(t *testing.T) {
	const shards, records = 4, 50
	g := newGroupPeer(t, shards)
	var mu sync.Mutex
	handled := map[recordID]int{}
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		handled[recordID{d.Shard, d.Offset}]++
		return nil
	}, consumeShardsEvery(5*time.Millisecond))
	for shard := range shards {
		g.publishNumbered(shard, records)
	}
	eventually(t, "all acknowledged", func() bool { return g.unfinished() == 0 })
	g.mu.Lock()
	g.shards = append(g.shards, &peerShard{})
	g.mu.Unlock()
	g.publishNumbered(shards, records)
	eventually(t, "those of the new shard too", func() bool { return g.unfinished() == 0 })
	k.stop()
	for id, n := range handled {
		if n != 1 {
			t.Errorf("record %v was handled %d times", id, n)
		}
	}
	if len(handled) != (shards+1)*records {
		t.Errorf("%d records handled", len(handled))
	}
}

// TestSilentShardHoldsUpNobody: the others get all the room there is.
func TestSilentShardHoldsUpNobody(t *testing.T) {
	g := newGroupPeer(t, 3)
	silence := make(chan struct{})
	var asked atomic.Int32
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		if m, ok := m.(*wire.GroupPoll); ok && m.Shard == 1 {
			asked.Add(1)
			<-silence
		}
		return nil
	})
	k := consume(t, dial(t, []string{g.addr()}), func(context.Context, Delivery) error { return nil })
	eventually(t, "the shard is polled", func() bool { return asked.Load() > 0 })
	g.publishNumbered(0, 50)
	g.publishNumbered(2, 50)
	eventually(t, "the others are done", func() bool { return g.unfinished() == 0 })
	close(silence)
	g.publishNumbered(1, 50)
	eventually(t, "all are done", func() bool { return g.unfinished() == 0 })
	k.stop()
}

// TestConsumeOneShard leaves the others alone.
func TestConsumeOneShard(t *testing.T) {
	g := newGroupPeer(t, 3)
	for shard := range 3 {
		g.publishNumbered(shard, 5)
	}
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		if d.Shard != 1 {
			t.Errorf("record of shard %d", d.Shard)
		}
		return nil
	}, ConsumeShard(1), ConsumeAs("me"))
	eventually(t, "the shard is done", func() bool { return g.unfinished() == 10 })
	k.stop()
	if n := len(g.lines("poll 0")) + len(g.lines("poll 2")); n != 0 {
		t.Errorf("%d polls of other shards", n)
	}
}

// TestConsumeOverLostConnections: everything is handled and settled in the
// end, and nothing twice at a time.
func TestConsumeOverLostConnections(t *testing.T) {
	const records = 400
	g := newGroupPeer(t, 2)
	var mu sync.Mutex
	handled, running := map[recordID]int{}, map[recordID]bool{}
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		id := recordID{d.Shard, d.Offset}
		mu.Lock()
		if running[id] {
			t.Errorf("record %v is handled twice at a time", id)
		}
		running[id] = true
		handled[id]++
		n := len(handled)
		mu.Unlock()
		if n%100 == 50 {
			g.cut()
			g.lapse(0)
			g.lapse(1)
		}
		mu.Lock()
		running[id] = false
		mu.Unlock()
		return nil
	}, ConsumeConcurrency(4))
	for i := range records / 2 {
		g.publish(0, fmt.Sprint(i))
		g.publish(1, fmt.Sprint(i))
	}
	eventually(t, "all acknowledged", func() bool {
		if g.unfinished() == 0 {
			return true
		}
		g.lapse(0) // claims whose answer was lost
		g.lapse(1)
		return false
	})
	k.stop()
	if len(handled) != records {
		t.Errorf("%d records handled", len(handled))
	}
}

// TestConsumeWaitsForItsBroker: refusals that pass are waited out.
func TestConsumeWaitsForItsBroker(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 3)
	var refused atomic.Int32
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		switch m.(type) {
		case *wire.GroupPoll, *wire.GroupAck:
			if refused.Add(1)%20 != 0 { // more often than one call repeats
				return notReady()
			}
		}
		return nil
	})
	k := consume(t, dial(t, []string{g.addr()}), func(context.Context, Delivery) error { return nil })
	eventually(t, "all acknowledged", func() bool { return g.unfinished() == 0 })
	k.stop()
}
