package producer

import "testing"

// The table of wire 9.6, row by row, with the bounds of the protocol.
func TestVerdicts(t *testing.T) {
	table := NewTable(0, 0)
	for seq := range uint64(100) {
		table.Record(7, seq, 1000+seq, 10*seq, 3)
	}
	for _, c := range []struct {
		name            string
		id, seq, digest uint64
		want            Verdict
	}{
		{"next", 7, 100, 1, Verdict{Outcome: Next, Expected: 100}},
		{"newest again", 7, 99, 1099, Verdict{Outcome: Duplicate, First: 990, Count: 3, Expected: 100}},
		{"oldest remembered again", 7, 36, 1036, Verdict{Outcome: Duplicate, First: 360, Count: 3, Expected: 100}},
		{"other payloads", 7, 99, 1, Verdict{Outcome: Reused, First: 990, Count: 3, Expected: 100}},
		{"beyond", 7, 101, 1, Verdict{Outcome: Gap, Expected: 100}},
		{"older than remembered", 7, 35, 1035, Verdict{Outcome: Expired, Expected: 100}},
		{"oldest of all", 7, 0, 1000, Verdict{Outcome: Expired, Expected: 100}},
		{"unknown", 8, 1, 1, Verdict{Outcome: Unknown}},
		{"new", 8, 0, 1, Verdict{Outcome: Next}},
	} {
		if got := table.Check(c.id, c.seq, c.digest); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestColdestOfAFullTable(t *testing.T) {
	table := NewTable(0, 0)
	for id := range uint64(DefaultProducers) {
		table.Record(id, 0, 0, id, 1)
	}
	table.Record(0, 1, 0, 5000, 1) // warm again
	table.Record(9999, 0, 0, 5001, 1)
	if table.Len() != DefaultProducers {
		t.Errorf("%d producers", table.Len())
	}
	for id, want := range map[uint64]Outcome{0: Duplicate, 1: Unknown, 2: Duplicate, 9999: Duplicate} {
		seq := uint64(0)
		if want == Unknown {
			seq = 1
		}
		if got := table.Check(id, seq, 0); got.Outcome != want {
			t.Errorf("producer %d: %+v", id, got)
		}
	}
}

// A producer that loses more than the table can take back is unknown, never
// taken for one that is further back than it is.
func TestRewindPastWhatIsKept(t *testing.T) {
	table := NewTable(4, 4)
	for seq := range uint64(20) {
		table.Record(7, seq, seq, seq, 1)
	}
	table.Rewind(5)
	if got := table.Check(7, 5, 5); got.Outcome != Unknown {
		t.Errorf("got %+v", got)
	}
	if table.Len() != 0 {
		t.Errorf("%d producers", table.Len())
	}
}

// A batch cut in two by a rewind is not held.
func TestRewindWithinABatch(t *testing.T) {
	table := NewTable(4, 4)
	table.Record(7, 0, 0, 0, 5)
	table.Record(7, 1, 1, 5, 5)
	table.Rewind(9)
	if got := table.Check(7, 1, 1); got.Outcome != Next {
		t.Errorf("got %+v", got)
	}
	table.Rewind(5)
	if got := table.Check(7, 0, 0); got.Outcome != Duplicate {
		t.Errorf("got %+v", got)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	table := NewTable(16, 64)
	var seq, tail uint64
	send := func() {
		for id := range uint64(8) {
			if v := table.Check(id, seq, seq); v.Outcome != Next {
				t.Fatalf("got %+v", v)
			}
			table.Record(id, seq, seq, tail, 1)
			tail++
		}
		seq++
	}
	for range 200 {
		send()
	}
	if n := testing.AllocsPerRun(100, send); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOutcomeNames(t *testing.T) {
	for o := Next; o <= Unknown; o++ {
		if o.String() == "invalid" {
			t.Errorf("outcome %d has no name", o)
		}
	}
}
