package segment

import (
	"reflect"
	"testing"
)

func TestHeaderVectors(t *testing.T) {
	for name, h := range map[string]Header{
		"header":         {BaseOffset: 1, CreatedMicros: 2},
		"header_chained": {BaseOffset: 1<<40 + 7, CreatedMicros: 1700000000000000, PrevCRC: 0xdeadbeef},
	} {
		want := golden(t, name)
		if len(want) != HeaderSize {
			t.Fatalf("%s has %d bytes", name, len(want))
		}
		wantBytes(t, name, h.Append(nil), want)
		got, err := ParseHeader(append(want, "batches"...))
		if err != nil || got != h {
			t.Errorf("%s parsed: %+v, %v", name, got, err)
		}
	}
}

// batchVectors are consecutive batches of one log.
func batchVectors() []struct {
	name  string
	batch Batch
} {
	return []struct {
		name  string
		batch Batch
	}{
		{"batch_records", Batch{Count: 1, BaseOffset: 7, TimestampMicros: 9, Block: block("hi")}},
		{"batch_producer", Batch{
			Count: 2, BaseOffset: 8, Generation: 3, TimestampMicros: 10, DurableThrough: 8,
			HasProducer: true, ProducerID: 0x11, Sequence: 5, Publisher: []byte("al"), Block: block("hi", "yo"),
		}},
		{"batch_generation", Batch{
			Kind: GenerationStart, Count: 1, BaseOffset: 10, Generation: 4, TimestampMicros: 11, DurableThrough: 10,
			Block: AppendGenerationBlock(nil, 4),
		}},
		{"batch_commit", Batch{
			Kind: Commit, Count: 1, BaseOffset: 11, Generation: 4, TimestampMicros: 12, DurableThrough: 11,
			Publisher: []byte("al"), Block: block("ev"), Extra: []byte("ops"),
		}},
		{"batch_empty_record", Batch{
			Count: 1, BaseOffset: 12, Generation: 4, TimestampMicros: 12, DurableThrough: 12, Block: block(""),
		}},
	}
}

func TestBatchVectors(t *testing.T) {
	var prev uint32
	for _, v := range batchVectors() {
		want := golden(t, v.name)
		b := v.batch
		b.PrevCRC = prev
		wantBytes(t, v.name, b.Append(nil), want)
		if b.Size() != len(want) {
			t.Errorf("%s: Size is %d, written were %d", v.name, b.Size(), len(want))
		}
		prepared := v.batch
		prepared.PrevCRC, prepared.Publisher = prev, nil
		crc := BodyCRC(string(v.batch.Publisher), b.Block, b.Extra)
		wantBytes(t, v.name+" prepared", prepared.AppendPrepared(nil, string(v.batch.Publisher), crc), want)
		if prepared.CRC != b.CRC {
			t.Errorf("%s: prepared has CRC %08x, not %08x", v.name, prepared.CRC, b.CRC)
		}

		var got Batch
		n, err := ParseBatch(append(want, "next"...), &got)
		if err != nil || n != len(want) {
			t.Fatalf("%s: parsed %d bytes of %d, %v", v.name, n, len(want), err)
		}
		wantSame(t, v.name, got, b)
		if err := got.CheckBlock(); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		prev = b.CRC
	}
}

// wantSame compares batches; an empty slice is as good as none.
func wantSame(t failer, name string, got, want Batch) {
	t.Helper()
	for _, b := range []*Batch{&got, &want} {
		for _, s := range []*[]byte{&b.Publisher, &b.Block, &b.Extra} {
			if len(*s) == 0 {
				*s = nil
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
	}
}

func TestSideFileVectors(t *testing.T) {
	generations := Generations{{Number: 1, Start: 0}, {Number: 4, Start: 10}}
	mark := Mark{Segment: 3, SyncedBytes: 4096}
	replica := Replica{HoldRetention: true, Generation: 4, CommitOffset: 10}
	ballot := Ballot{Generation: 4, Leader: "n-1"}
	identity := Identity{Space: "caches", Tenant: "acme", Namespace: "default", Name: "orders", Shard: 3}
	uid := UID("0197f2a4-5e0b-7c1d-9a3e-2f6b8c4d1e07")
	index := []IndexEntry{{Offset: 7, Position: 64}, {Offset: 107, Position: 4200}}

	check := func(name string, written []byte, want any, parse func([]byte) (any, error)) {
		t.Helper()
		wantBytes(t, name, written, golden(t, name))
		got, err := parse(golden(t, name))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s parsed: %+v, %v; want %+v", name, got, err, want)
		}
	}
	check("mark", mark.Append(nil), mark, func(b []byte) (any, error) { return ParseMark(b) })
	check("epochs", generations.Append(nil), generations, func(b []byte) (any, error) { return ParseGenerations(b) })
	check("epochs_empty", Generations(nil).Append(nil), Generations{}, func(b []byte) (any, error) { return ParseGenerations(b) })
	check("replica", replica.Append(nil), replica, func(b []byte) (any, error) { return ParseReplica(b) })
	check("ballot", ballot.Append(nil), ballot, func(b []byte) (any, error) { return ParseBallot(b) })
	check("identity", identity.Append(nil), identity, func(b []byte) (any, error) { return ParseIdentity(b) })
	check("uid", uid.Append(nil), uid, func(b []byte) (any, error) { return ParseUID(b) })
	check("index", AppendIndex(nil, 7, index), index, func(b []byte) (any, error) { return ParseIndex(b, 7) })
}
