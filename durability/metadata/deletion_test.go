package metadata

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/model"
)

// A stream that is deleted loses its data on every broker, also on one that was
// away, and nothing else goes. Another of the same name begins empty.
func TestDeletionRemovesThatDataEverywhere(t *testing.T) {
	t.Parallel()
	p := lonePlane(t, filepath.Join(t.TempDir(), "plane"))
	b1, b2 := p.broker("b1"), p.broker("b2")
	b1.start()
	b2.start()
	p.awaitNodes(t, 2)
	p.createStream("doomed", 4, true)
	p.createStream("kept", 4, true)
	p.awaitShards(t, 8, map[string]int{"b1": 4, "b2": 4})
	c := b1.dial(t, b2)
	fill := func(stream, text string) {
		for key := range 32 {
			publish(t, c, stream, text, client.WithKey(fmt.Appendf(nil, "%d", key)))
		}
	}
	fill("doomed", "before")
	fill("kept", "before")
	for _, b := range []*brokerProcess{b1, b2} {
		if len(b.filesOf(t, "doomed")) == 0 || len(b.filesOf(t, "kept")) == 0 {
			t.Fatalf("%s has the files %v", b.id, b.files(t))
		}
	}
	kept1 := b1.filesOf(t, "kept")
	b2.kill()
	kept2 := b2.filesOf(t, "kept")
	ctx, cancel := bounded(t)
	defer cancel()
	must(t, p.client(p.admin).DeleteStream(ctx, model.StreamKey{TenantID: shop, Namespace: inShop.Namespace, Stream: "doomed"}))
	gone := func(b *brokerProcess) {
		eventually(t, "the data on "+b.id+" goes", func() error {
			if files := b.filesOf(t, "doomed"); len(files) > 0 {
				return fmt.Errorf("there is %v", slices.Collect(maps.Keys(files)))
			}
			return nil
		})
	}
	gone(b1)
	must(t, b1.keeps(kept1))
	b2.start()
	p.awaitNodes(t, 2)
	gone(b2)
	must(t, b2.keeps(kept2))

	p.createStream("doomed", 4, true)
	p.awaitShards(t, 8, map[string]int{"b1": 4, "b2": 4})
	c = b1.dial(t, b2)
	if ack := publish(t, c, "doomed", "after"); ack.Offset != 0 {
		t.Errorf("the new stream begins at %d", ack.Offset)
	}
	for shard := range uint32(4) {
		for _, r := range records(t, c, "doomed", shard) {
			if r != "after" {
				t.Errorf("shard %d of the new stream holds %q", shard, r)
			}
		}
	}
	total := 0
	for shard := range uint32(4) {
		total += len(records(t, c, "kept", shard))
	}
	if total != 32 {
		t.Errorf("the stream that stays has %d records, want 32", total)
	}
}
