package frames

import (
	"testing"

	"github.com/felixlog/felix/wire"
)

func split(t *testing.T, frame []byte) (wire.Header, []byte) {
	t.Helper()
	h, err := wire.ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	if int(h.Length) != len(frame)-wire.HeaderSize {
		t.Fatalf("header says %d payload bytes of %d", h.Length, len(frame)-wire.HeaderSize)
	}
	return h, frame[wire.HeaderSize:]
}

func TestPublishBatchIsOneAFelixBrokerTakes(t *testing.T) {
	h, payload := split(t, PublishBatch(64, 1024))
	var p wire.Publish
	if err := wire.ParsePublish(h.Flags, payload, &p); err != nil {
		t.Fatal(err)
	}
	if !p.Acked || p.AckMode != wire.AckPerBatch || p.Block.Count() != 64 || p.Block.PayloadBytes() != 64*1024 {
		t.Errorf("acked %v, mode %v, %d records of %d bytes", p.Acked, p.AckMode, p.Block.Count(), p.Block.PayloadBytes())
	}
	if string(p.Tenant)+"/"+string(p.Namespace)+"/"+string(p.Stream) != "dev/default/bench" {
		t.Errorf("published to %s/%s/%s", p.Tenant, p.Namespace, p.Stream)
	}
}

func TestEventBatchIsOneAFelixClientTakes(t *testing.T) {
	h, payload := split(t, EventBatch(64, 256))
	var e wire.EventBatch
	if err := wire.ParseEventBatch(h.Flags, payload, &e); err != nil {
		t.Fatal(err)
	}
	if !e.Shared || !e.HasOffsets || e.Count() != 64 || e.Block.PayloadBytes() != 64*256 {
		t.Errorf("shared %v, offsets %v, %d records of %d bytes", e.Shared, e.HasOffsets, e.Count(), e.Block.PayloadBytes())
	}
}

func TestSizesGrowWithTheValue(t *testing.T) {
	key := "bench-key-0000000000000000000000"
	for _, c := range []struct {
		name        string
		empty, full Sizes
		where       func(Sizes) int // the side that carries the value
	}{
		{"publish", LonePublish(0), LonePublish(300), func(s Sizes) int { return s.Request }},
		{"put", CachePut(key, 0), CachePut(key, 300), func(s Sizes) int { return s.Request * 3 / 4 }},
		{"get", CacheGet(key, 0), CacheGet(key, 300), func(s Sizes) int { return s.Reply * 3 / 4 }},
	} {
		if grown := c.where(c.full) - c.where(c.empty); grown < 299 || grown > 301 {
			t.Errorf("%s: 300 bytes of value make %d bytes more", c.name, grown)
		}
		if min(c.empty.Request, c.empty.Reply) <= wire.HeaderSize {
			t.Errorf("%s: sizes %+v", c.name, c.empty)
		}
	}
}
