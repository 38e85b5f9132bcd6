package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// streamLog is the log under a stream.
func (n *node) streamLog(sh *stream.Shard) *shardlog.Log {
	n.t.Helper()
	name := sh.Name()
	key := storage.Key{Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, Shard: sh.Index()}
	log, err := n.storage.OpenLog(n.t.Context(), storage.Streams, key, storage.LogOptions{})
	n.must(err)
	return log
}

// trim has retention take everything below an offset, which begins a segment.
func (n *node) trim(sh *stream.Shard, offset uint64) {
	n.t.Helper()
	n.must(n.streamLog(sh).TrimBefore(offset))
	if oldest, _ := sh.Bounds(); oldest != offset {
		n.t.Fatalf("oldest %d, want %d", oldest, offset)
	}
}

// Retention outranks a group: what it took is skipped and counted, claims on it
// are gone, and the record above says how many there were.
func TestRetentionBelowAGroup(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{})
	sh := n.stream("s")
	n.fill(sh, 10)
	n.must(n.streamLog(sh).RollNow())
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.takes(r, 4, "0 1 2 3")
	n.must(n.DeadLetter(t.Context(), r, 2))
	n.must(n.DeadLetter(t.Context(), r, 3))
	n.must(n.Redrive(t.Context(), r, 3))
	n.acked(r, 1)
	n.trim(sh, 10)
	records := n.takes(r, 3, "10 11 12")
	if records[0].SkippedBefore != 7 || records[1].SkippedBefore != 0 {
		t.Fatalf("%+v", records)
	}
	// 0, and 4 to 9: 1 was acked, 2 given up, and of 3 that was owed again
	// retention took the record too.
	i := n.describe(r)
	if i.Trimmed != 7 || i.Committed != 10 || i.InFlight != 3 || i.Owed != 0 || i.DeadLetters != 1 {
		t.Fatalf("%+v", i)
	}
	if st := n.Stats(); st.Trimmed != i.Trimmed {
		t.Fatalf("%+v", st)
	}
	if err := n.Redrive(t.Context(), r, 2); !isA[*NotListedError](err) || !strings.Contains(err.Error(), "retention") {
		t.Fatal(err)
	}
	n.must(n.Discard(t.Context(), r, 2))
	n.acked(r, 0, 10)
	n.again(mem.Crash(3))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Committed != 11 || i.Owed != 0 || i.DeadLetters != 0 {
		t.Fatalf("%+v", i)
	}
	n.takes(r, 3, "11x2 12x2 13")
}

// A record that retention takes between the claim and the read is skipped, a
// group that begins below the oldest record begins there.
func TestRetentionUnderAPoll(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 4)
	n.must(n.streamLog(sh).RollNow())
	n.fill(sh, 4)
	src := &tampered{Source: sh}
	src.read = func() {
		src.read = nil
		n.trim(sh, 4)
	}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	if records := n.takes(r, 6, "4 5"); records[0].SkippedBefore != 4 {
		t.Fatalf("%+v", records)
	}
	fresh := Ref{Shard: src, Group: "fresh"}
	n.must(n.Ready(t.Context(), fresh))
	if records := n.takes(fresh, 1, "4"); records[0].SkippedBefore != 4 {
		t.Fatalf("%+v", records)
	}
	n.acked(fresh, 4)
	if i := n.describe(fresh); i.Committed != 5 || i.Trimmed != 4 {
		t.Fatalf("%+v", i)
	}
}

// tampered is a source whose reads something happens before.
type tampered struct {
	Source
	read  func()
	fails error
}

func (s *tampered) Read(ctx context.Context, o stream.ReadOptions) (stream.Records, error) {
	if s.read != nil {
		s.read()
	}
	if s.fails != nil {
		return stream.Records{}, s.fails
	}
	return s.Source.Read(ctx, o)
}

// The first record of a leader is nobody's to work on: it is skipped, and the
// record above says so.
func TestGenerationStartsAreSkipped(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	n.fill(sh, 2)
	for generation := range uint64(2) {
		block := segment.AppendGenerationBlock(nil, generation+1)
		_, err := n.streamLog(sh).AppendWait(&shardlog.Entry{Kind: segment.GenerationStart, Count: 1, Block: block, Generation: generation + 1})
		n.must(err)
	}
	n.fill(sh, 2) // the marks become readable with what follows
	records := n.takes(r, 10, "0 1 4 5")
	if records[2].SkippedBefore != 2 || records[0].SkippedBefore != 0 || records[3].SkippedBefore != 0 {
		t.Fatalf("%+v", records)
	}
	n.acked(r, 0, 1)
	if i := n.describe(r); i.Committed != 4 {
		t.Fatalf("%+v", i)
	}
	// An answer that was not sent is the same again, to whom it tells.
	n.Unclaim(r, records[2:])
	if records = n.takes(r, 10, "4 5"); records[0].SkippedBefore != 2 {
		t.Fatalf("%+v", records)
	}
}

// A read that fails leaves the records owed, as if they had not been claimed.
func TestAReadThatFails(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	src := &tampered{Source: sh, fails: errors.New("i/o error")}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	for range 10 {
		if _, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 2, Holder: holder("c")}); err != src.fails {
			t.Fatal(err)
		}
	}
	src.fails = nil
	n.takes(r, 3, "0 1 2")
}

// When the context ends while the records are read, nothing is claimed.
func TestAPollThatEndsWhileItReads(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	src := &tampered{Source: sh}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		src.read = cancel
		if records, err := n.Poll(ctx, r, PollOptions{MaxRecords: 2, Holder: holder("c")}); !errors.Is(err, context.Canceled) || records != nil {
			t.Fatal(records, err)
		}
		src.read = nil
		want := []string{"0 1", "0x2 1x2", "0x3 1x3"}[round]
		for _, record := range n.takes(r, 2, want) {
			n.must(n.Nack(r, record.Offset, record.Attempts, 0))
		}
	}
}

// A poll whose context ends after the group was moved gives back nothing that is
// somebody else's by now.
func TestAPollThatEndsUnderASeek(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 2)
	src := &tampered{Source: sh}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	ctx, cancel := context.WithCancel(t.Context())
	src.read = func() {
		src.read = nil
		n.seek(r, Position{Kind: Earliest}, false, Moved{0, true})
		n.takes(r, 2, "0 1")
		cancel()
	}
	if _, err := n.Poll(ctx, r, PollOptions{MaxRecords: 2, Holder: holder("first")}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if i := n.describe(r); i.InFlight != 2 || i.Owed != 0 {
		t.Fatalf("%+v", i)
	}
}

// A record out of reach of its disk is an error of the poll; when the stream
// ends polls end with why.
func TestTheEndOfTheStreamEndsPolls(t *testing.T) {
	n := newNode(t, Config{MaxWait: time.Hour})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	end := n.poll(t.Context(), r, waiting("w", 1))
	n.parked(r, 1)
	n.end(n.streams[0], stream.ErrRemoved)
	if p := n.ends(end); p.err != stream.ErrRemoved {
		t.Fatalf("%+v", p)
	}
	_, pollErr := n.Poll(t.Context(), r, waiting("w", 1))
	_, describeErr := n.Describe(t.Context(), r, DescribeOptions{})
	for _, err := range []error{pollErr, describeErr, n.ack(r, 0), n.Nack(r, 0, 0, 0), n.Ready(t.Context(), r)} {
		if err != stream.ErrRemoved {
			t.Error(err)
		}
	}
	if st := n.Stats(); st.Groups != 0 || st.Waiting != 0 {
		t.Fatalf("%+v", st)
	}
}
