package segment

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawBatch draws any batch a writer may make.
func drawBatch(t *rapid.T) Batch {
	records := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "records")
	b := Batch{
		Kind:            rapid.SampledFrom([]Kind{Records, Records, GenerationStart, Commit}).Draw(t, "kind"),
		BaseOffset:      rapid.Uint64Max(1<<63).Draw(t, "offset"),
		Generation:      rapid.Uint64().Draw(t, "generation"),
		TimestampMicros: rapid.Uint64().Draw(t, "time"),
		DurableThrough:  rapid.Uint64().Draw(t, "durable"),
		PrevCRC:         rapid.Uint32().Draw(t, "prev"),
		HasProducer:     rapid.Bool().Draw(t, "has producer"),
		Publisher:       rapid.SliceOfN(rapid.Byte(), 0, MaxPublisher).Draw(t, "publisher"),
	}
	if b.HasProducer {
		b.ProducerID, b.Sequence = rapid.Uint64().Draw(t, "producer"), rapid.Uint64().Draw(t, "sequence")
	}
	switch b.Kind {
	case GenerationStart:
		b.Count, b.Block = 1, AppendGenerationBlock(nil, b.Generation)
	case Commit:
		b.Count, b.Block = 1, block(records[0])
		b.Extra = rapid.SliceOf(rapid.Byte()).Draw(t, "extra")
	case Records:
		b.Count, b.Block = uint32(len(records)), block(records...)
	}
	return b
}

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		written := b.Append(slices.Clone(before))
		if !bytes.HasPrefix(written, before) {
			t.Fatal("Append changed what was there")
		}
		written = written[len(before):]
		if len(written) != b.Size() {
			t.Fatalf("Size %d, written %d", b.Size(), len(written))
		}
		var got Batch
		n, err := ParseBatch(written, &got)
		if err != nil || n != len(written) {
			t.Fatalf("parsed %d of %d: %v", n, len(written), err)
		}
		wantSame(t, "batch", got, b)
		if got.End() != b.BaseOffset+uint64(b.Count) {
			t.Fatalf("ends at %d", got.End())
		}
	})
}

func TestBatchCutAnywhereIsTruncated(t *testing.T) {
	for _, v := range batchVectors() {
		whole := golden(t, v.name)
		for n := range whole {
			var b Batch
			_, err := ParseBatch(whole[:n], &b)
			c := wantKind(t, err, Truncated)
			needed := len(whole)
			if n < BatchHeaderSize {
				needed = BatchHeaderSize
			}
			if c.Needed != int64(needed) || c.Available != int64(n) {
				t.Errorf("%s cut at %d: %v", v.name, n, err)
			}
		}
	}
}

func TestBatchEveryBitCounts(t *testing.T) {
	for _, v := range batchVectors() {
		eachBit(golden(t, v.name), func(bit int, damaged []byte) {
			var b Batch
			if _, err := ParseBatch(damaged, &b); err == nil {
				t.Errorf("%s: bit %d inverted goes unseen", v.name, bit)
			}
		})
	}
}

// What the header's checksum covers decides whether its lengths are believed:
// a flip there must not pass as an unfinished write.
func TestDamagedHeaderIsNotTruncation(t *testing.T) {
	whole := golden(t, "batch_producer")
	eachBit(whole[:BatchHeaderSize], func(bit int, damaged []byte) {
		_, err := ParseBatchHeader(damaged)
		if bit < 32 {
			wantKind(t, err, BatchMagic)
		} else {
			wantKind(t, err, BatchHeaderChecksum)
		}
	})
}

// sealed gives a damaged header the checksum that belongs to it.
func sealed(b []byte) []byte {
	if len(b) >= BatchHeaderSize {
		putU32(b[4:], checksum(b[batchSummedAt:BatchHeaderSize]))
	}
	return b
}

func TestBatchHeaderThatNoWriterMakes(t *testing.T) {
	for _, c := range []struct {
		name, vector string
		at           int
		value        []byte
		kind         CorruptionKind
	}{
		{"unknown kind", "batch_records", 16, []byte{3}, BatchKind},
		{"unknown flag", "batch_records", 17, []byte{2}, BatchFlags},
		{"reserved byte", "batch_records", 19, []byte{1}, BatchFlags},
		{"producer without flag", "batch_records", 71, []byte{1}, BatchFlags},
		{"sequence without flag", "batch_records", 79, []byte{1}, BatchFlags},
		{"no records", "batch_records", 20, appendU32(nil, 0), BatchCount},
		{"two commits", "batch_commit", 20, appendU32(nil, 2), BatchCount},
		{"offsets wrap", "batch_records", 32, bytes.Repeat([]byte{0xff}, 8), BatchCount},
		{"more records than the block", "batch_records", 20, appendU32(nil, 3), BatchLength},
		{"short generation", "batch_generation", 24, appendU32(nil, 15), BatchLength},
		{"block over the cap", "batch_records", 24, appendU32(nil, MaxBody+1), BatchTooLarge},
		{"sum over the cap", "batch_records", 24, appendU32(appendU32(nil, MaxBody), 1), BatchTooLarge},
		{"lengths wrap", "batch_records", 24, bytes.Repeat([]byte{0xff}, 8), BatchTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := golden(t, c.vector)
			copy(b[c.at:], c.value)
			_, err := ParseBatchHeader(sealed(b))
			wantKind(t, err, c.kind)
		})
	}
}

func TestBatchAtTheCap(t *testing.T) {
	b := Batch{Count: 1, Block: block(string(make([]byte, MaxBody-blockCountSize-recordLengthSize)))}
	written := b.Append(nil)
	var got Batch
	if n, err := ParseBatch(written, &got); err != nil || n != MaxBatchBytes {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestBlockOfAnotherCountIsRefused(t *testing.T) {
	b := Batch{Count: 1, Block: block("hi", "yo")}
	var got Batch
	_, err := ParseBatch(b.Append(nil), &got)
	wantKind(t, err, BatchCount)
}

func TestFindBatch(t *testing.T) {
	first, second := golden(t, "batch_records"), golden(t, "batch_producer")
	for _, c := range []struct {
		name string
		b    []byte
		want int // -1: none
	}{
		{"at once", first, 0},
		{"behind noise", append([]byte("noise FLXB FLX"), first...), 14},
		{"behind a magic that is none", append([]byte("FLXFLXB"), first...), 7},
		{"behind a damaged one", append(append([]byte("FLXB"), first[5:]...), second...), len(first) - 1},
		{"nothing", nil, -1},
		{"magic only", []byte("FLXB"), -1},
		{"cut in its header", first[:BatchHeaderSize-1], -1},
		{"cut in its body", first[:BatchHeaderSize], 0},
	} {
		position, h, ok := FindBatch(c.b)
		if !ok && c.want >= 0 || ok && (position != c.want || h.Count == 0) {
			t.Errorf("%s: %d, %v", c.name, position, ok)
		}
	}
}

func TestBatchesAreWrittenAndReadWithoutAllocation(t *testing.T) {
	b := Batch{Count: 2, Block: block("hi", "yo"), Extra: []byte("ops"), Publisher: []byte("al")}
	publisher := string(b.Publisher)
	buf := make([]byte, 0, 1024)
	var out Batch
	total := 0
	if n := testing.AllocsPerRun(100, func() {
		crc := BodyCRC(publisher, b.Block, b.Extra)
		buf = b.AppendPrepared(buf[:0], publisher, crc)
		buf = b.Append(buf)
		if _, err := ParseBatch(buf, &out); err != nil {
			t.Fatal(err)
		}
		for _, record := range out.All() {
			total += len(record)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzBatch(f *testing.F) {
	for _, v := range batchVectors() {
		f.Add(golden(f, v.name), false)
		f.Add(golden(f, v.name), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) > BatchHeaderSize {
			putU32(b[12:], checksum(b[BatchHeaderSize:]))
			sealed(b)
		}
		var got Batch
		n, err := ParseBatch(b, &got)
		if err != nil {
			return
		}
		wantBytes(t, "written again", got.Append(nil), b[:n])
		records := 0
		for range got.All() {
			records++
		}
		if err := got.CheckBlock(); err == nil && records != int(got.Count) {
			t.Errorf("%d records of %d in a sound block", records, got.Count)
		}
		if at, h, ok := FindBatch(b); !ok || at != 0 || h.Size() != n {
			t.Errorf("not found where it is: %d, %v", at, ok)
		}
	})
}
