package storage

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// numbered is a batch whose records say the value they were given.
func numbered(values []string) *shardlog.Entry {
	block := binary.BigEndian.AppendUint32(nil, uint32(len(values)))
	for _, v := range values {
		block = append(binary.BigEndian.AppendUint32(block, uint32(len(v))), v...)
	}
	return &shardlog.Entry{Kind: segment.Records, Count: len(values), Block: block}
}

// readAll reads the payloads of a log from its base on.
func readAll(t *testing.T, log *shardlog.Log) []string {
	t.Helper()
	var out []string
	for next := log.Base(); next < log.Tail(); {
		page, err := log.Read(next, 1<<20, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Batches {
			for offset, record := range b.All() {
				if offset >= next {
					out = append(out, string(record))
				}
			}
		}
		next = page.Next
		page.Release()
	}
	return out
}

// TestPowerLoss appends, flushes, rolls, truncates and trims, and loses power at
// a random moment, several times on one disk. No disk that was only cut off may
// be refused; what was answered as durable is there, what was not is there up
// to some point, and nothing else is.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(60 * soak.Times()) {
		rng := rand.New(rand.NewPCG(seed, 54))
		mode := []shardlog.FsyncMode{shardlog.None, shardlog.OnCommit}[rng.IntN(2)]
		change := func(c *Config) {
			c.Log = shardlog.Options{
				Fsync: mode, SegmentBytes: int64(500 + rng.IntN(4000)), IndexSpacing: 200,
				Preallocate: rng.IntN(2) == 0, RolloverThresholdPercent: []int{0, 50}[rng.IntN(2)],
			}
			c.JournalBytes = []int64{-1, 0, 8 << 10, 64 << 10}[rng.IntN(4)]
		}
		m := fstest.New(seed)
		var records []string // what the log may hold, from offset 0 on
		durable, base := 0, 0
		for round := range 4 {
			s := open(t, m, change)
			log, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{})
			if err != nil {
				t.Fatalf("seed %d, round %d, mode %s: %v", seed, round, mode, err)
			}
			tail := int(log.Tail())
			if tail < durable || tail > len(records) || int(log.Base()) > base {
				t.Fatalf("seed %d, round %d, mode %s: [%d, %d), durable were %d, appended %d", seed, round, mode, log.Base(), tail, durable, len(records))
			}
			if got := readAll(t, log); !slices.Equal(got, records[log.Base():tail]) {
				t.Fatalf("seed %d, round %d, mode %s: other records", seed, round, mode)
			}
			records, durable = records[:tail], tail
			for op := range rng.IntN(60) {
				switch what := rng.IntN(40); {
				case what < 2:
					err = log.Flush()
					durable = len(records)
				case what == 2:
					err = log.RollNow()
					durable = len(records)
				case what == 3 && log.Base() < log.Tail():
					// A cut falls between batches: here each has as many records
					// as its first one says.
					cut := len(records)
					for range 1 + rng.IntN(3) {
						if cut > int(log.Base()) {
							var n int
							fmt.Sscanf(records[cut-1], "of %d", &n)
							cut -= n
						}
					}
					if cut >= int(log.Base()) {
						if err = log.Truncate(uint64(cut)); err == nil {
							records = records[:cut:cut]
							durable = len(records)
						}
					}
				case what == 4:
					err = log.TrimBefore(uint64(rng.IntN(len(records) + 1)))
					base = max(base, int(log.Base()))
				default:
					n := 1 + rng.IntN(5)
					values := make([]string, n)
					for i := range values {
						values[i] = fmt.Sprintf("of %d: seed %d round %d op %d, %0*d", n, seed, round, op, rng.IntN(300), i)
					}
					records = append(records, values...)
					_, err = log.AppendWait(numbered(values))
					if mode == shardlog.OnCommit {
						durable = len(records)
					}
				}
				if err != nil {
					t.Fatalf("seed %d, round %d, mode %s: %v", seed, round, mode, err)
				}
			}
			if rng.IntN(4) == 0 {
				durable = len(records) // only the process died
				m = m.Kill()
			} else {
				m = m.Crash(seed*100 + uint64(round))
			}
		}
	}
}

// TestTrimLeavesNoStray: a roll failed on a full disk and its file could not be
// removed either. Between two segments it means nothing; before the oldest it
// would be one that was lost, so it goes before the segment below it does.
func TestTrimLeavesNoStray(t *testing.T) {
	m := fstest.New(1)
	faults := fstest.NewFaults(m)
	s := open(t, faults, nil)
	log := mustOpen(t, s, Streams, key(0), LogOptions{})
	appendRecords(t, log, 3, 10)
	stray := segment.FileName(1)
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: stray, Times: 1, Err: fstest.ErrNoSpace})
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRemove}, Path: stray, Times: 1})
	if err := log.RollNow(); err == nil {
		t.Fatal("rolled on a full disk")
	}
	if err := log.RollNow(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(filepath.Join(log.Dir(), stray)); err != nil {
		t.Fatalf("there is no stray file: %v", err)
	}
	appendRecords(t, log, 2, 10)
	if err := log.TrimBefore(3); err != nil || log.Base() != 3 {
		t.Fatalf("base %d, %v", log.Base(), err)
	}
	s = open(t, m.Crash(1), nil)
	if log := mustOpen(t, s, Streams, key(0), LogOptions{}); log.Base() != 3 || log.Tail() != 5 {
		t.Errorf("[%d, %d)", log.Base(), log.Tail())
	}
}
