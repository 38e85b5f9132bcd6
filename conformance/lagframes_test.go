package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// overrun is how many records of 64 KiB are written: far more than an event
// stream that nobody reads can hold, whose window is 512 KiB, and its queue.
const overrun = 64

// A lagWriter writes large records and values on a connection of its own.
type lagWriter struct{ *rawStream }

func newLagging(t *testing.T) (*rawConn, lagWriter) {
	c := newGolden(t, felixtest.WithSetting("subscriber-queue-capacity", "4"), felixtest.WithSetting("cache-watch-queue-capacity", "4"))
	return c, lagWriter{dialRaw(t, c.node).session()}
}

func (w lagWriter) publish(offset uint64) {
	w.t.Helper()
	w.frames(acked(offset, "s", strings.Repeat("x", 64<<10)).Frame())
	if a, err := raw.ParseAck(w.frame()); err != nil || a.Status != 0 || a.Offset != offset {
		w.t.Fatalf("publish %d: %+v, %v", offset, a, err)
	}
}

func (w lagWriter) put(i int) {
	w.t.Helper()
	w.exchange(exchange{fmt.Sprintf(`{"type":"cache_put",%s"key":"k%d","value":%q,"request_id":%d}`, inCache, i, strings.Repeat("QUFB", 16<<10), i),
		fmt.Sprintf(`{"type":"cache_ok","request_id":%d}`, i)})
}

// TestLagOfSubscriptions: at its first loss a subscription of the log ends
// with subscription_lagged, for a client that reads it and offsets; any other
// one goes on with a gap (wire 10, 21.7).
func TestLagOfSubscriptions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		flags, features uint32
		told            bool
	}{
		{"offered", clientFlags, featureSubscriptionLagged, true},
		{"without offsets", 0, featureSubscriptionLagged, false},
		{"not offered", clientFlags, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, writer := newLagging(t)
			auth := func() *rawStream {
				s := c.open()
				s.frames(raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": c.node.Token(), "client_flags": tc.flags, "client_features": tc.features}))
				s.frame()
				return s
			}
			s := auth()
			s.frames(raw.JSON(`{"type":"subscribe",` + inStream + `"subscription_id":9}`))
			s.frame()
			events := c.acceptEvents()
			events.wantText(`{"type":"event_stream_hello","subscription_id":9}`)
			for i := range overrun {
				writer.publish(uint64(i))
			}
			if !tc.told {
				// It goes on: what is written once there is room arrives.
				got := 0
				for f := events.frame(); ; f = events.frame() {
					e, err := raw.ParseEvents(f)
					if err != nil {
						t.Fatalf("%s: %v", f.Describe(), err)
					}
					if len(e.Records[0]) == 0 {
						break
					}
					got += len(e.Records)
					writer.frames(publish(0, "s", "").Frame()) // empty: the last one
				}
				if got == 0 || got >= overrun {
					t.Errorf("%d of %d records: nothing was lost", got, overrun)
				}
				return
			}
			next := uint64(0)
			for {
				f := events.frame()
				if f.Flags == 0 {
					events.wantFIN()
					if want := fmt.Sprintf(`{"type":"subscription_lagged","subscription_id":9,"resume_from":%d}`, next); string(f.Payload) != want {
						t.Fatalf("got  %s\nwant %s", f.Describe(), want)
					}
					break
				}
				next = contiguous(t, f, next)
			}
			if next == 0 || next == overrun {
				t.Fatalf("lagged after %d of %d records", next, overrun)
			}
			s = auth()
			s.frames(raw.JSON(fmt.Sprintf(`{"type":"subscribe",%s"start":{"offset":%d}}`, inStream, next)))
			s.frame()
			events = c.acceptEvents()
			for events.frame(); next < overrun; {
				next = contiguous(t, events.frame(), next)
			}
		})
	}
}

// contiguous checks that a batch begins at an offset and returns its end.
func contiguous(t *testing.T, f raw.Frame, next uint64) uint64 {
	t.Helper()
	e, err := raw.ParseEvents(f)
	if err != nil || e.BaseOffset != next {
		t.Fatalf("%s at %d, not %d (%v)", f.Describe(), e.BaseOffset, next, err)
	}
	return next + uint64(len(e.Records))
}

// TestLagOfWatches: a watch that falls behind ends with cache_watch_lagged,
// for every client, and the next one goes on from there (wire 11).
func TestLagOfWatches(t *testing.T) {
	c, writer := newLagging(t)
	watch := func(members string) *rawStream {
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"cache_watch",` + inCache + `"prefix":""` + members + `}`))
		s.frame()
		e := c.acceptEvents()
		e.frame()
		return e
	}
	e := watch("")
	for i := range overrun {
		writer.put(i)
	}
	next := uint64(0)
	for f := e.frame(); f.Type() != "cache_watch_lagged"; f = e.frame() {
		if at, _ := f.Uint("offset"); f.Type() != "cache_event" || at != next {
			t.Fatalf("%s after %d", f.Describe(), next)
		}
		next++
		if next == overrun {
			t.Fatal("nothing was lost")
		}
	}
	e.wantFIN()
	e = watch(fmt.Sprintf(`,"from_offset":%d`, next))
	for ; next < overrun; next++ {
		if at, _ := e.frame().Uint("offset"); at != next {
			t.Fatalf("change %d instead of %d", at, next)
		}
	}
}
