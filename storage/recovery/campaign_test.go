package recovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// appendAndReopen appends to a recovered log as shardlog does, and checks that
// the next recovery has it all.
func appendAndReopen(t *testing.T, m *fstest.Mem, p *Plan, records []string) {
	t.Helper()
	w := &testWriter{t: t, fs: m, spacing: 256, offset: p.Tail, crc: p.LastCRC, micros: 1 << 40, durable: p.Tail, records: slices.Clone(records)}
	if p.Verdict == Fresh {
		w.begin(p.NextID)
	} else {
		last := p.Active()
		file, err := m.OpenWrite(w.path(segment.FileName(last.ID)))
		w.must(err)
		w.id, w.file, w.pos, w.header = last.ID, file, last.Size, segment.Header{BaseOffset: last.Base}
		w.index = segment.NewBuilder(256)
	}
	w.append(3, 25)
	w.flush()
	w.must(w.file.Close())
	again := recovered(t, m, Options{})
	if got := contents(t, m, again); !slices.Equal(got, w.records) {
		t.Fatalf("after appending to %d records: %d", len(records), len(got))
	}
}

// TestEveryCut shortens the newest segment to every length of its last 4 KiB.
// Above the mark the log opens with what was whole; below it is refused.
func TestEveryCut(t *testing.T) {
	const last = 4096
	for _, mark := range []string{"at the end", "behind", "missing"} {
		good := fstest.New(1)
		w := newWriter(t, good)
		for range 10 {
			w.append(4, 40)
		}
		w.roll()
		var ends []int64
		for i := range 40 {
			w.append(1+i%4, 60)
			ends = append(ends, w.pos)
			if mark == "at the end" || i < 15 {
				w.flush()
			}
		}
		w.durable = 0
		w.must(w.file.Sync())
		switch mark {
		case "at the end":
			w.writeIndex()
		case "missing":
			w.must(good.Drop(w.path(segment.MarkFile)))
		}
		path := w.path(segment.FileName(1))
		synced := ends[14]
		shorter := good.Clone()
		for size := w.pos; size >= w.pos-last; size-- {
			w.must(shorter.Cut(path, size))
			below := mark == "at the end" && size < w.pos || mark == "behind" && size < synced
			p := inspect(t, shorter, Options{})
			if below {
				if p.Verdict != Refuse || corruption(p.Err).Path != path || corruption(p.Err).Position > size {
					t.Fatalf("mark %s, cut to %d: %s, %v", mark, size, p.Verdict, p.Err)
				}
				continue
			}
			whole, want := 0, uint64(40)
			for whole < len(ends) && ends[whole] <= size {
				want += uint64(1 + whole%4)
				whole++
			}
			if p.Verdict == Refuse || p.Tail != want {
				t.Fatalf("mark %s, cut to %d: %s, tail %d, want %d, %v", mark, size, p.Verdict, p.Tail, want, p.Err)
			}
			if size%8 > 0 {
				continue // the plan is all that depends on every byte
			}
			m := shorter.Clone()
			p = recovered(t, m, Options{})
			got := contents(t, m, p)
			if !slices.Equal(got, w.records[:want]) {
				t.Fatalf("mark %s, cut to %d: other records", mark, size)
			}
			appendAndReopen(t, m, p, got)
		}
	}
}

// TestEveryFlippedBit (BR-09): after one flipped bit in any file every record
// reads back as it was written, or the shard is refused, naming file and
// position. The log was shut down cleanly, so nothing may be cut.
func TestEveryFlippedBit(t *testing.T) {
	good := fstest.New(1)
	w := newWriter(t, good)
	for i := range 5 {
		for range 12 {
			w.append(1+i, 30)
			w.flush()
		}
		if i < 4 {
			w.roll()
		}
	}
	w.close()
	for name, data := range sideFiles {
		w.must(fs.WriteDurable(good, w.path(name), data))
	}
	names, err := good.List(testDir)
	w.must(err)
	slices.Sort(names)
	rng := rand.New(rand.NewPCG(9, 9))
	outcomes := map[Verdict]int{}
	for run := range 1500 * soak.Times() {
		name := names[run%len(names)]
		path := w.path(name)
		info, err := good.Stat(path)
		w.must(err)
		bit := rng.Int64N(info.Size * 8)
		m := good.Clone()
		w.must(m.FlipBit(path, bit))
		what := fmt.Sprintf("bit %d of %s", bit, name)
		p := inspect(t, m, Options{VerifyAll: true})
		outcomes[p.Verdict]++
		_, isSegment := segment.ParseFileName(name)
		if p.Verdict == Refuse {
			damage, ok := errors.AsType[*segment.CorruptionError](p.Err)
			// A segment's position is the start of the batch, a side file's may be
			// that of its checksum.
			if !ok || damage.Path != path || damage.Position < 0 || damage.Position > info.Size || isSegment && damage.Position > bit/8 {
				t.Fatalf("%s: refused with %v", what, p.Err)
			}
			continue
		}
		if isSegment {
			t.Fatalf("%s: %s, steps %v", what, p.Verdict, p.Steps)
		}
		p = recovered(t, m, Options{VerifyAll: true})
		if p.CutBytes > 0 || !slices.Equal(contents(t, m, p), w.records) {
			t.Fatalf("%s: %d bytes cut, other records", what, p.CutBytes)
		}
	}
	if outcomes[Refuse] == 0 || outcomes[Clean] == 0 || outcomes[Repair] == 0 {
		t.Errorf("outcomes %v: the campaign has missed one", outcomes)
	}
}

// TestCrashBetweenSteps: power fails before, in and after every step of Apply.
// What is found then is planned for again, and ends in the same log.
func TestCrashBetweenSteps(t *testing.T) {
	for name, build := range repairs {
		for seed := range uint64(30 * soak.Times()) {
			m := fstest.New(seed)
			o := build(t, m)
			want := inspect(t, m, o)
			if want.Verdict == Refuse {
				t.Fatalf("%s: %v", name, want.Err)
			}
			steps := len(want.Steps)
			for stop := range steps + 1 {
				disk := m.Clone()
				for _, step := range want.Steps[:stop] {
					if err := apply(disk, testDir, step); err != nil {
						t.Fatalf("%s: %s: %v", name, step, err)
					}
				}
				if stop < steps {
					// The step is under way: one operation of it is the last.
					faults := fstest.NewFaults(disk)
					faults.Inject(fstest.Rule{Skip: int(seed % 5), Err: fstest.ErrIO, Half: seed%2 == 0})
					_ = apply(faults, testDir, want.Steps[stop])
				}
				disk = disk.Crash(seed + 1000)
				got := recovered(t, disk, o)
				if got.Tail != want.Tail || got.Base != want.Base || got.LastCRC != want.LastCRC {
					t.Fatalf("%s, seed %d, power lost in step %d of %v: [%d, %d), want [%d, %d)", name, seed, stop, want.Steps, got.Base, got.Tail, want.Base, want.Tail)
				}
			}
		}
	}
}

// repairs build directories that need repair of every kind.
var repairs = map[string]func(t testing.TB, m *fstest.Mem) Options{
	"torn tail": func(t testing.TB, m *fstest.Mem) Options {
		w := threeSegments(t, m)
		w.must(m.Overwrite(w.path(segment.FileName(2)), w.pos, []byte("FLXB half a batch")))
		w.must(fs.WriteDurable(m, w.path(segment.EpochsFile), segment.Generations{{Number: 2, Start: 500}}.Append(nil)))
		return Options{}
	},
	"blank first": func(t testing.TB, m *fstest.Mem) Options {
		w := &testWriter{t: t, fs: m}
		w.must(fs.MkdirDurable(m, testDir))
		w.create(0, make([]byte, 64))
		w.must(m.SyncDir(testDir))
		w.mark(segment.Mark{SyncedBytes: 64})
		return Options{BaseOffset: 3}
	},
	"abandoned roll": func(t testing.TB, m *fstest.Mem) Options {
		w := threeSegments(t, m)
		w.create(3, segment.Header{BaseOffset: 500}.Append(nil))
		w.create(4, nil)
		w.must(m.SyncDir(testDir))
		return Options{}
	},
	"unfinished seal": func(t testing.TB, m *fstest.Mem) Options {
		w := newWriter(t, m)
		w.append(4, 20)
		w.flush()
		w.append(4, 20)
		torn := w.pos - 5
		w.must(w.file.Sync())
		w.begin(1)
		w.append(4, 20)
		w.must(w.file.Sync())
		w.must(m.Cut(w.path(segment.FileName(0)), torn))
		return Options{}
	},
	"checksum tail": func(t testing.TB, m *fstest.Mem) Options {
		w := threeSegments(t, m)
		w.must(m.FlipBit(w.path(segment.FileName(2)), (w.pos-1)*8))
		return Options{RepairChecksumTail: true}
	},
	"indices": func(t testing.TB, m *fstest.Mem) Options {
		w := threeSegments(t, m)
		w.must(m.Drop(w.path(segment.IndexName(0))))
		w.must(m.FlipBit(w.path(segment.IndexName(1)), 3))
		w.must(m.FlipBit(w.path(segment.IndexName(2)), 300))
		w.must(fs.WriteDurable(m, w.path(segment.IndexName(9)), []byte("left over")))
		return Options{}
	},
	"mark": func(t testing.TB, m *fstest.Mem) Options {
		w := threeSegments(t, m)
		w.must(m.Drop(w.path(segment.MarkFile)))
		return Options{}
	},
}

// TestFailedApplyIsRepeated: with each operation of Apply failing once, a second
// try ends as the first should have.
func TestFailedApplyIsRepeated(t *testing.T) {
	for name, build := range repairs {
		for n := 1; ; n++ {
			m := fstest.New(1)
			o := build(t, m)
			p := inspect(t, m, o)
			faults := fstest.NewFaults(m)
			faults.FailNth(n, false, fstest.ErrNoSpace)
			err := Apply(faults, testDir, p)
			if err == nil && n > 3 {
				break
			}
			if err != nil && !errors.Is(err, fstest.ErrNoSpace) {
				t.Fatalf("%s, operation %d: %v", name, n, err)
			}
			if got := recovered(t, m, o); got.Tail != p.Tail || got.Base != p.Base {
				t.Fatalf("%s, operation %d: [%d, %d), want [%d, %d)", name, n, got.Base, got.Tail, p.Base, p.Tail)
			}
			if n > 200 {
				t.Fatalf("%s: no end of operations", name)
			}
		}
	}
}
