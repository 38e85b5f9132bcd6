package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/felixtest"
)

// Sizes of the tests of lag: a queue is overrun many times over by what a
// link that stalls holds back, while the stall stays below the idle timeout.
const (
	lagQueue   = "16"
	lagRecords = 150
	lagBytes   = 16 << 10
)

var smallQueues = []felixtest.Option{
	felixtest.WithSetting("cache-watch-queue-capacity", lagQueue),
	felixtest.WithSetting("subscriber-queue-capacity", lagQueue),
}

// stalled runs calls of the direct client while nothing reaches the other one.
func (l *faultLab) stalled(t *testing.T, begin func(i int, payload string) pending) {
	t.Helper()
	l.link.set(linkStall)
	calls := make([]pending, lagRecords)
	for i := range calls {
		calls[i] = begin(i, strings.Repeat("x", lagBytes))
	}
	for i, c := range calls {
		if err := c.result(nil); err != nil {
			t.Fatalf("call %d beside the stalled link: %v", i, err)
		}
	}
	l.link.set(linkPass)
}

// A pyChange is an item of a watch: a CacheChange, a CacheWatchLagged or, nil,
// None.
type pyChange struct {
	Class      string `json:"class"`
	Key        string `json:"key"`
	Offset     uint64 `json:"offset"`
	ResumeFrom uint64 `json:"resume_from"`
}

func (d *driver) recv(watch string, seconds float64) (*pyChange, error) {
	var c *pyChange
	err := d.call(&c, watch, "recv", nil, map[string]any{"timeout": seconds})
	return c, err
}

// TestClientLag: a reader behind a link that stalls for longer than its queue
// at the node lasts. It learns of it, or misses nothing.
func TestClientLag(t *testing.T) {
	t.Parallel()
	pythonClient(t)
	t.Run("watch.lag_is_reported_rather_than_silent", func(t *testing.T) {
		t.Parallel()
		testWatchLag(t)
	})
	t.Run("a subscription of a log misses nothing", func(t *testing.T) {
		t.Parallel()
		testDurableLag(t)
	})
	t.Run("a subscription in memory shows its gap", func(t *testing.T) {
		t.Parallel()
		testMemoryLag(t)
	})
}

func testWatchLag(t *testing.T) {
	l := newFaultLab(t, append(smallQueues, felixtest.Durable())...)
	everything := map[string]any{"filter": []string{"prefix", ""}}
	watch := func(kwargs map[string]any) {
		if err := l.keep("w", "c", "watch_cache", []any{"t1", "default", "c", everything}, kwargs); err != nil {
			t.Fatal(err)
		}
	}
	watch(nil)
	l.stalled(t, func(i int, payload string) pending {
		return l.begin("direct", "cache_put", []any{"t1", "default", "c", fmt.Sprint(i), pyBytes(payload)}, nil)
	})
	var next, resume uint64
	for resume == 0 {
		c, err := l.recv("w", patience.Seconds())
		switch {
		case err != nil || c == nil:
			t.Fatalf("after %d changes: %v, %v", next, c, err)
		case c.Class == "CacheWatchLagged":
			resume = c.ResumeFrom
		case c.Class != "CacheChange" || c.Offset != next:
			t.Fatalf("%+v after the change at %d: a gap before the lag was reported", c, next)
		default:
			next++
		}
	}
	if next == lagRecords || resume != next {
		t.Fatalf("%d changes were delivered, to go on from %d", next, resume)
	}
	if c, err := l.recv("w", 1); c != nil || err != nil {
		t.Errorf("after the lag: %+v, %v", c, err)
	}
	watch(map[string]any{"start": resume})
	for ; next < lagRecords; next++ {
		if c, err := l.recv("w", patience.Seconds()); err != nil || c == nil || c.Class != "CacheChange" || c.Offset != next {
			t.Fatalf("the watch from %d: %+v, %v at %d", resume, c, err, next)
		}
	}
	t.Logf("lagged after %d of %d changes", resume, lagRecords)
}

// lagSubscription overruns the queue of a subscription of the stalled client.
func lagSubscription(t *testing.T, l *faultLab) {
	t.Helper()
	if err := l.keep("sub", "c", "subscribe", []any{"t1", "default", "s"}, nil); err != nil {
		t.Fatal(err)
	}
	l.stalled(t, func(i int, payload string) pending {
		return l.begin("direct", "publish", []any{"t1", "default", "s", pyBytes(payload)}, nil)
	})
	if l.node.Stats().Subscribe.DroppedBatches == 0 {
		t.Fatal("nothing was dropped: the test says nothing")
	}
}

func testDurableLag(t *testing.T) {
	l := newFaultLab(t, append(smallQueues, felixtest.Durable())...)
	lagSubscription(t, l)
	for want := range uint64(lagRecords) {
		e, err := l.nextEvent("sub", patience.Seconds())
		if err != nil || e == nil || e.Offset == nil || *e.Offset != want {
			t.Fatalf("event %d: %+v, %v", want, e, err)
		}
	}
}

func testMemoryLag(t *testing.T) {
	l := newFaultLab(t, smallQueues...)
	lagSubscription(t, l)
	var got, missing uint64
	for last := (*uint64)(nil); ; {
		e, err := l.nextEvent("sub", 1)
		switch {
		case err != nil:
			t.Fatalf("after %d events: %v", got, err)
		case e == nil:
			// All that was queued is read, so there is room for one more.
			if err := l.publish("direct", "end", nil); err != nil {
				t.Fatal(err)
			}
			continue
		case e.Offset == nil:
			t.Fatalf("event %d has no offset", got)
		}
		got++
		if last != nil {
			missing += *e.Offset - *last - 1 - e.SkippedBefore
		}
		last = e.Offset
		if string(e.Payload.Bytes) == "end" {
			break
		}
	}
	if missing == 0 || got+missing != lagRecords+1 {
		t.Errorf("%d events and %d missing between them, of %d", got, missing, lagRecords+1)
	}
}
