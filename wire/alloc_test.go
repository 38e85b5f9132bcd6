package wire

import (
	"bytes"
	"testing"
)

// A hotPath is work that happens for every batch, event frame or cache request.
type hotPath struct {
	name  string
	bytes int // per operation
	run   func() error
}

// hotPaths are shared by the test that counts their allocations and the
// benchmark that times them.
func hotPaths(tb testing.TB) []hotPath {
	payloads := make([][]byte, 64)
	for i := range payloads {
		payloads[i] = bytes.Repeat([]byte("r"), 256)
	}
	block := Block(AppendBlock(nil, payloads...))
	publish := Publish{
		Acked: true, Keyed: true, RequestID: 7, AckMode: AckPerBatch, Key: []byte("customer-1"),
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("orders"), Block: block,
	}
	ack := Ack{
		RequestID: 7, HasOwner: true, OwnerNode: "broker-b", OwnerAddr: "10.0.0.5:5000", OwnerGeneration: 7, HasOffset: true, Offset: 42,
	}
	failed := Ack{
		RequestID: 7, Failed: true, Message: "publish queue full; retry in 10 ms", HasCode: true, Code: CodeOverloaded,
		Retry: RetryAfter, HasDetail: true, Detail: Detail{Reason: "publish_queue_full", RetryAfterMS: 10},
	}
	events := EventBatch{Shared: true, HasOffsets: true, BaseOffset: 100, Block: block}
	timed := EventBatch{Shared: true, HasOffsets: true, HasTimestamps: true, Timed: AppendTimed(nil, block, 1700000000000000)}
	names := CacheGet{Tenant: "t1", Namespace: "default", Cache: "primary", Key: []byte("customer-1"), RequestID: Some[uint64](7)}
	value := bytes.Repeat([]byte("v"), 1024)
	get := names
	del := CacheDelete(names)
	put := CachePut{Tenant: "t1", Namespace: "default", Cache: "primary", Key: []byte("customer\n1"), Value: value, RequestID: Some[uint64](7), TTLMS: Some[uint64](1000)}
	found := CacheValue{Tenant: "t1", Namespace: "default", Cache: "primary", Key: names.Key, Value: Some(value), RequestID: Some[uint64](7), Version: Some[uint64](17)}
	miss := CacheValue{Tenant: "t1", Namespace: "default", Cache: "primary", Key: names.Key, RequestID: Some[uint64](7)}
	putIf := CachePutIf{Tenant: "t1", Namespace: "default", Cache: "primary", Key: names.Key, Value: value, Condition: Condition{Version: 17}, RequestID: 7}
	deleteIf := CacheDeleteIf{Tenant: "t1", Namespace: "default", Cache: "primary", Key: names.Key, Version: 17, RequestID: 7}
	applied := CacheConditionResult{Applied: true, Version: Some[uint64](18), RequestID: 7}
	groupAck := GroupAck{GroupRef: GroupRef{Tenant: "t1", Namespace: "default", Stream: "orders", Group: "workers"}, Offset: 17, RequestID: 7}
	groupAckBatch := GroupAckBatch{GroupRef: groupAck.GroupRef, Offsets: []uint64{17, 18, 19, 1 << 40}, RequestID: 8}
	ok, publishOK := CacheOK{RequestID: 7}, PublishOK{RequestID: 7, Offset: Some[uint64](42)}

	dst := make([]byte, 0, 64<<10)
	var paths []hotPath
	parsePublish := func(p *Publish) {
		f, payload := cut(tb, p.Append(nil))
		var got Publish
		paths = append(paths, hotPath{"ParsePublish", len(payload), func() error { return ParsePublish(f, payload, &got) }})
		paths = append(paths, hotPath{"Publish.Append", len(payload), func() error { dst = p.Append(dst[:0]); return nil }})
	}
	parseAck := func(name string, a *Ack) {
		f, payload := cut(tb, a.Append(nil))
		var got Ack
		paths = append(paths, hotPath{"ParseAck/" + name, len(payload), func() error { return ParseAck(f, payload, &got) }})
		paths = append(paths, hotPath{"Ack.Append/" + name, len(payload), func() error { dst = a.Append(dst[:0]); return nil }})
	}
	parseEvents := func(name string, e *EventBatch) {
		f, payload := cut(tb, e.Append(nil))
		var got EventBatch
		paths = append(paths, hotPath{"ParseEventBatch/" + name, len(payload), func() error {
			if err := ParseEventBatch(f, payload, &got); err != nil {
				return err
			}
			if eventBytes(&got) != 64*256 {
				return ErrMalformed
			}
			return nil
		}})
	}
	parsePublish(&publish)
	parseAck("ok", &ack)
	parseAck("failed", &failed)
	parseEvents("plain", &events)
	parseEvents("timed", &timed)
	paths = append(paths, hotPath{"AppendEventHead", len(block), func() error {
		dst = AppendEventHead(dst[:0], events.Flags(), 0, 100, 0, nil, len(block))
		return nil
	}})
	paths = append(paths, hotPath{"Block.All", len(block), func() error {
		n := 0
		for _, p := range block.All() {
			n += len(p)
		}
		if n != block.PayloadBytes() {
			return ErrMalformed
		}
		return nil
	}}, hotPath{"AppendTimed", len(block), func() error {
		dst = AppendTimed(dst[:0], block, 1)
		return nil
	}})
	var d Decoder
	for name, m := range map[string]Message{
		"cache_get": &get, "cache_delete": &del, "cache_put": &put, "cache_value": &found, "cache_value miss": &miss,
		"cache_put_if": &putIf, "cache_delete_if": &deleteIf, "cache_condition_result": &applied, "cache_ok": &ok, "publish_ok": &publishOK,
		"group_ack": &groupAck, "group_ack_batch": &groupAckBatch,
	} {
		payload := AppendMessage(nil, m)[HeaderSize:]
		paths = append(paths,
			hotPath{"Decode/" + name, len(payload), func() error { _, err := d.Decode(payload); return err }},
			hotPath{"AppendMessage/" + name, len(payload), func() error { dst = AppendMessage(dst[:0], m); return nil }},
		)
	}
	return paths
}

func eventBytes(e *EventBatch) int {
	n := 0
	for _, event := range e.All() {
		n += len(event.Payload)
	}
	return n
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	for _, p := range hotPaths(t) {
		var failed error
		n := testing.AllocsPerRun(200, func() {
			if err := p.run(); err != nil {
				failed = err
			}
		})
		if n != 0 || failed != nil {
			t.Errorf("%s: %v allocations, %v", p.name, n, failed)
		}
	}
}

func BenchmarkHotPaths(b *testing.B) {
	for _, p := range hotPaths(b) {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(p.bytes))
			for b.Loop() {
				if err := p.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseMessage is the cost of a message that is not frequent.
func BenchmarkParseMessage(b *testing.B) {
	for _, sample := range loadSamples(b) {
		m, err := ParseMessage([]byte(sample))
		if err != nil {
			b.Fatal(err)
		}
		if m.MessageType() != "group_poll" && m.MessageType() != "group_records" {
			continue
		}
		b.Run(m.MessageType(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseMessage([]byte(sample)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFrameReader cuts 1 KiB frames out of bulk.
func BenchmarkFrameReader(b *testing.B) {
	r := NewFrameReader(&loop{data: bytes.Repeat(frame(0, make([]byte, 1024)), 256)}, MaxFramePayload)
	b.ReportAllocs()
	b.SetBytes(1024)
	for b.Loop() {
		if _, _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
