package recovery

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// fuzzNames are the files a fuzzed directory may have.
var fuzzNames = []string{
	segment.FileName(0), segment.FileName(1), segment.FileName(2), segment.FileName(3),
	segment.IndexName(0), segment.IndexName(1), segment.IndexName(2), segment.IndexName(3),
	segment.MarkFile, segment.EpochsFile, segment.ReplicaFile, segment.BallotFile, segment.IdentityFile,
	"keys.idx", "00000000000000000001.log.tmp",
}

// pack turns a directory into an input: for each file the index of its name,
// three bytes of length, and what is in it.
func pack(t testing.TB, m fs.FS) []byte {
	var out []byte
	for i, name := range fuzzNames {
		data, err := fs.ReadFile(m, filepath.Join(testDir, name), 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, byte(i), byte(len(data)>>16), byte(len(data)>>8), byte(len(data)))
		out = append(out, data...)
	}
	return out
}

// unpack makes a directory of any input.
func unpack(t testing.TB, data []byte) *fstest.Mem {
	m := fstest.New(1)
	if err := fs.MkdirDurable(m, testDir); err != nil {
		t.Fatal(err)
	}
	for files := 0; len(data) >= 4 && files < 2*len(fuzzNames); files++ {
		name := filepath.Join(testDir, fuzzNames[int(data[0])%len(fuzzNames)])
		n := min(int(data[1])<<16|int(data[2])<<8|int(data[3]), len(data)-4)
		content := data[4 : 4+n]
		data = data[4+n:]
		if err := fs.WriteDurable(m, name, content); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// checkRecovery is what holds of every directory whatsoever: it is refused with
// a typed error and left alone, or recovered to a part of what was there, which
// the next recovery finds whole.
func checkRecovery(t *testing.T, m *fstest.Mem, o Options) {
	before := m.Clone()
	o.IndexSpacing = 256
	p := inspect(t, m, o)
	if p.Verdict == Refuse {
		if damage, ok := errors.AsType[*segment.CorruptionError](p.Err); !ok || damage.Path == "" || damage.Position < 0 {
			t.Fatalf("refused with %v", p.Err)
		}
		if err := Apply(m, testDir, p); err != p.Err {
			t.Fatalf("apply of a refusal: %v", err)
		}
		return
	}
	recovered(t, m, o)
	if o.VerifyAll {
		contents(t, m, p)
	}
	next := p.Base
	for _, s := range p.Segments {
		was, err := fs.ReadFile(before, filepath.Join(testDir, segment.FileName(s.ID)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		is, err := fs.ReadFile(m, filepath.Join(testDir, segment.FileName(s.ID)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(was, is) || s.Base != next {
			t.Fatalf("segment %d holds what was not there, or does not meet", s.ID)
		}
		next = s.End
	}
	if next != p.Tail {
		t.Fatalf("the segments end at %d, the log at %d", next, p.Tail)
	}
}

func fuzzSeeds(t testing.TB) [][]byte {
	var seeds [][]byte
	for _, name := range slices.Sorted(maps.Keys(repairs)) {
		m := fstest.New(1)
		repairs[name](t, m)
		seeds = append(seeds, pack(t, m))
	}
	m := fstest.New(1)
	w := newWriter(t, m)
	w.append(1, 4)
	w.flush()
	for name, data := range sideFiles {
		w.must(fs.WriteDurable(m, w.path(name), data))
	}
	w.writeIndex()
	return append(seeds, pack(t, m), nil)
}

// FuzzRecovery gives recovery any directory.
func FuzzRecovery(f *testing.F) {
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed, byte(0))
		f.Add(seed, byte(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, flags byte) {
		if len(data) > 1<<16 {
			return
		}
		checkRecovery(t, unpack(t, data), Options{VerifyAll: flags&1 != 0, RepairChecksumTail: flags&2 != 0})
	})
}

// FuzzDamagedLog edits a log that is whole: four bytes an edit, of which the
// first chooses the file and what is done. Checksums may be made right again,
// so that what is behind them is reached.
func FuzzDamagedLog(f *testing.F) {
	f.Add([]byte{0, 0, 70, 1}, byte(0))
	f.Add([]byte{2, 1, 0, 0, 7, 0, 3, 9}, byte(1))
	f.Add([]byte{8, 0, 17, 5, 2, 0, 150, 2, 18, 0, 200, 7}, byte(2))
	good := fstest.New(1)
	w := threeSegments(f, good)
	f.Fuzz(func(t *testing.T, edits []byte, flags byte) {
		m := good.Clone()
		for len(edits) >= 4 && len(edits) <= 64 {
			edit(t, m, edits[0], int64(edits[1])<<8|int64(edits[2]), edits[3])
			edits = edits[4:]
		}
		o := Options{RepairChecksumTail: flags&2 != 0, IndexSpacing: 256}
		checkRecovery(t, m.Clone(), o)
		o.VerifyAll = true
		checkRecovery(t, m.Clone(), o)
		p := inspect(t, m, o)
		if p.Verdict == Refuse || p.Verdict == Fresh {
			return
		}
		recovered(t, m, o)
		if got := contents(t, m, p); p.Base == 0 && !recordsAgree(got, w.records) {
			t.Fatalf("%d records that were never written", len(got))
		}
	})
}

// recordsAgree reports whether got is how want begins, where an edit did not
// rewrite a payload and its checksum.
func recordsAgree(got, want []string) bool {
	return len(got) <= len(want) && slices.Equal(got, want[:len(got)])
}

// edit does one thing to one file.
func edit(t *testing.T, m *fstest.Mem, what byte, at int64, value byte) {
	names := []string{
		segment.FileName(0), segment.FileName(1), segment.FileName(2), segment.IndexName(0),
		segment.IndexName(1), segment.IndexName(2), segment.MarkFile, segment.EpochsFile,
	}
	path := filepath.Join(testDir, names[what%8])
	info, err := m.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if info.Size > 0 {
		at %= info.Size
	} else {
		at = 0
	}
	switch what / 8 % 6 {
	case 0:
		if info.Size > 0 {
			err = m.FlipBit(path, at*8+int64(value%8))
		}
	case 1:
		err = m.Cut(path, at)
	case 2:
		err = m.Overwrite(path, at, make([]byte, info.Size-at))
	case 3:
		err = m.Overwrite(path, info.Size, bytes.Repeat([]byte{value}, int(at%300)))
	case 4:
		err = m.Drop(path)
	case 5: // a field of the header of a batch, with its checksum
		at = segment.HeaderSize + at/segment.BatchHeaderSize*segment.BatchHeaderSize
		if at+segment.BatchHeaderSize > info.Size {
			return
		}
		var data []byte
		if data, err = fs.ReadFile(m, path, 1<<20); err != nil {
			t.Fatal(err)
		}
		header := data[at : at+segment.BatchHeaderSize]
		header[8+int(value)%72] ^= value | 1
		err = m.Overwrite(path, at, withHeaderSum(header))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLengthFromDiskAllocatesNothing: a header may say that 64 MiB follow it.
func TestLengthFromDiskAllocatesNothing(t *testing.T) {
	m, w := tailLog(t, 1, 0)
	b := segment.Batch{Count: 1, BaseOffset: w.offset, PrevCRC: w.crc, Block: []byte{0, 0, 0, 1, 0, 0, 0, 0}}
	data := b.Append(nil)
	data[24], data[25] = 4, 0 // a block of 64 MiB
	w.must(m.Overwrite(w.path(segment.FileName(0)), w.pos, withHeaderSum(data)))
	const plans = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range plans {
		if p := inspect(t, m, Options{}); p.Verdict != Repair || p.Tail != 4 {
			t.Fatalf("%s, tail %d", p.Verdict, p.Tail)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) / plans; allocated > 64<<10 {
		t.Errorf("a plan allocated %d bytes", allocated)
	}
}
