package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The hub against every watch asked by itself: each gets exactly what it
// matches while it is registered, and nothing is left behind.
func TestHubAgainstAllWatches(t *testing.T) {
	patterns := rapid.SampledFrom([]string{"", "a", "ab", "abc", "b", "ba", "x"})
	rapid.Check(t, func(rt *rapid.T) {
		var h hub
		type member struct {
			*Watch
			want []uint64
		}
		var members []*member
		shard := &logShard{}
		for offset := range uint64(rapid.IntRange(1, 80).Draw(rt, "steps")) {
			switch rapid.SampledFrom([]string{"join", "leave", "change", "change"}).Draw(rt, "op") {
			case "join":
				w := &Watch{
					shard: shard, match: patterns.Draw(rt, "pattern"), byPrefix: rapid.Bool().Draw(rt, "prefix"),
					slot: -1, joined: true, capacity: 3, maxBytes: 1000, wake: make(chan struct{}, 1),
				}
				if err := h.join(w); err != nil {
					rt.Fatal(err)
				}
				members = append(members, &member{Watch: w})
			case "leave":
				if len(members) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(members)-1).Draw(rt, "who")
				h.leave(members[i].Watch)
				h.leave(members[i].Watch)
				members = slices.Delete(members, i, i+1)
			case "change":
				key := patterns.Draw(rt, "key")
				h.changed(Change{Key: []byte(key), Value: []byte("v"), Offset: offset})
				for _, m := range members {
					hit := key == m.match || m.byPrefix && strings.HasPrefix(key, m.match)
					if hit && len(m.want) < 3 {
						m.want = append(m.want, offset)
					}
				}
			}
			for _, m := range members {
				var got []uint64
				for _, c := range m.queue {
					got = append(got, c.Offset)
				}
				if fmt.Sprint(got) != fmt.Sprint(m.want) {
					rt.Fatalf("watch of %q (prefix %v) has %v, want %v", m.match, m.byPrefix, got, m.want)
				}
			}
		}
		for _, m := range members {
			h.leave(m.Watch)
		}
		if len(h.keys)+len(h.prefixes)+len(h.lengths) != 0 || h.count.Load() != 0 {
			rt.Fatalf("left behind: %v %v %v, %d", h.keys, h.prefixes, h.lengths, h.count.Load())
		}
	})
}
