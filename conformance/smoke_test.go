package conformance

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// TestSmoke is the smoke sequence of wire 22.3: a client that offers nothing,
// one connection, every stream authenticated on its own, byte for byte.
func TestSmoke(t *testing.T) {
	onBoth(t, testSmoke)
}

// onBoth runs a test against a node in memory and one with storage. Most of
// the protocol is the same for both.
func onBoth(t *testing.T, test func(t *testing.T, options ...felixtest.Option)) {
	t.Helper()
	t.Run(string(inMemoryNode), func(t *testing.T) { test(t) })
	t.Run(string(onDisk), func(t *testing.T) { test(t, felixtest.Durable()) })
}

func testSmoke(t *testing.T, options ...felixtest.Option) {
	n := felixtest.Start(t, options...)
	n.CreateStream("conformance", 1)
	n.CreateCache("primary")
	c := dialRaw(t, n)

	sub := c.legacy()
	sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"conformance"}`))
	sub.fin()
	answer := sub.frame()
	id, ok := answer.Uint("subscription_id")
	if want := fmt.Sprintf(`{"type":"subscribed","subscription_id":%d}`, id); !ok || string(answer.Payload) != want {
		t.Fatalf("got  %s\nwant %s", answer.Describe(), want)
	}
	sub.wantFIN()
	events := c.acceptEvents()
	events.wantText(fmt.Sprintf(`{"type":"event_stream_hello","subscription_id":%d}`, id))

	for i, payload := range []string{"alpha", "beta"} {
		pub := c.legacy()
		pub.frames(raw.JSON(fmt.Sprintf(
			`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"conformance","payload":%q,"request_id":%d,"ack":"per_message"}`,
			base64.StdEncoding.EncodeToString([]byte(payload)), i+1)))
		pub.fin()
		pub.wantText(fmt.Sprintf(`{"type":"publish_ok","request_id":%d}`, i+1))
		pub.wantFIN()
		// Each is read before the next, with which it might share a frame.
		wantPlainEvent(t, events.frame(), id, payload)
	}

	put := c.legacy()
	put.frames(raw.JSON(`{"type":"cache_put","tenant_id":"t1","namespace":"default","cache":"primary","key":"conformance-key","value":"dmFsdWU=","ttl_ms":100}`))
	put.fin()
	put.wantText(`{"type":"ok"}`)
	put.wantFIN()

	get := func() raw.Frame {
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"conformance-key"}`))
		f := s.frame()
		s.wantFIN()
		return f
	}
	const hit = `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"primary","key":"conformance-key","value":"dmFsdWU="}`
	const miss = `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"primary","key":"conformance-key","value":null}`
	// The value may be gone before it is first read, on a machine that stalls
	// for 100 ms; it must be gone in the end.
	if got := string(get().Payload); got != hit && got != miss {
		t.Fatalf("got  %s\nwant %s", got, hit)
	}
	for deadline := time.Now().Add(patience); ; {
		if got := string(get().Payload); got == miss {
			break
		} else if got != hit {
			t.Fatalf("got  %s\nwant %s", got, miss)
		}
		if time.Now().After(deadline) {
			t.Fatal("a value with 100 ms to live is still there")
		}
	}
}

// wantPlainEvent checks one event as a client that offered nothing gets it:
// a binary batch of one record with no offset, skips, publisher or times.
func wantPlainEvent(t *testing.T, f raw.Frame, subscription uint64, payload string) {
	t.Helper()
	if f.Flags != raw.FlagEventBatch && f.Flags != raw.FlagEventBatchShared {
		t.Fatalf("event frame %s", f.Describe())
	}
	want := raw.Events{Flags: f.Flags, SubscriptionID: subscription, Records: [][]byte{[]byte(payload)}}.Frame()
	if string(f.Payload) != string(want.Payload) {
		t.Fatalf("got  %s\nwant %s", f.Describe(), want.Describe())
	}
}
