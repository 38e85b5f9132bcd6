package stream

import (
	"testing"

	"pgregory.net/rapid"
)

// The ring against a list: whole batches, newest maxRecords records at least
// as far as the bytes allow, never more than one batch beyond, never more than
// the bytes.
func TestRingHoldsTheNewest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := rapid.IntRange(1, 40).Draw(rt, "records")
		bytes := rapid.Int64Range(1000, 40_000).Draw(rt, "bytes")
		sh := newShard(t, Config{RingRecords: records, RingBytes: bytes})
		type held struct {
			first uint64
			n     int
			size  int64
		}
		var model []held
		for range rapid.IntRange(1, 80).Draw(rt, "batches") {
			n := rapid.IntRange(1, 12).Draw(rt, "n")
			first := sh.claimed
			publish(t, sh, n, nil)
			_, tail := sh.Bounds()
			if tail != first+uint64(n) {
				rt.Fatalf("tail %d after %d records from %d", tail, n, first)
			}
			size := int64(classSize(classOf(len(blockOfLen(first, n))))) + envelopeOverhead
			model = append(model, held{first, n, size})
			sumRecords, sumBytes := 0, int64(0)
			keep := len(model)
			for keep > 0 && sumRecords < records && sumBytes+model[keep-1].size <= bytes {
				keep--
				sumRecords += model[keep].n
				sumBytes += model[keep].size
			}
			model = model[keep:]
			want := tail
			if len(model) > 0 {
				want = model[0].first
			}
			if oldest, _ := sh.Bounds(); oldest != want || sh.ring.records != sumRecords || sh.ring.bytes != sumBytes {
				rt.Fatalf("oldest %d, %d records, %d bytes; want %d, %d, %d", oldest, sh.ring.records, sh.ring.bytes, want, sumRecords, sumBytes)
			}
			from := rapid.Uint64Range(want, tail).Draw(rt, "from")
			sub := subscribe(t, sh, SubscribeOptions{Start: FromOffset(from)})
			r := newReader(t, sub)
			r.rest()
			if r.missing != 0 || r.next != tail || r.records != tail-from {
				rt.Fatalf("from %d: read %d records up to %d, tail %d", from, r.records, r.next, tail)
			}
			sub.Close()
		}
	})
}

func blockOfLen(first uint64, n int) []byte {
	b, _ := numbered(first, n)
	return b
}
