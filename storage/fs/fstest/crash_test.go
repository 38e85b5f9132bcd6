package fstest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/storage/fs"
)

// possible is what a crash may leave of a file: for each byte the values it
// has had since the last sync, and the range of its size.
type possible struct {
	now         []byte
	bytes       []values
	least, most int64
	durable     int64
}

// values is a set of byte values.
type values [4]uint64

func (v *values) add(b byte)      { v[b/64] |= 1 << (b % 64) }
func (v *values) has(b byte) bool { return v[b/64]&(1<<(b%64)) != 0 }

func (p *possible) note(b []byte, at int) {
	for i, v := range b {
		for len(p.bytes) <= at+i {
			p.bytes = append(p.bytes, values{1}) // zero
		}
		p.bytes[at+i].add(v)
	}
}

func (p *possible) write(b []byte, at int) {
	for len(p.now) < at+len(b) {
		p.now = append(p.now, 0)
	}
	copy(p.now[at:], b)
	p.note(b, at)
	p.most = max(p.most, int64(len(p.now)))
}

func (p *possible) truncate(size int) {
	for len(p.now) < size {
		p.now = append(p.now, 0)
	}
	p.note(make([]byte, len(p.now)-size), size)
	p.now = p.now[:size]
	p.least, p.most = min(p.least, int64(size)), max(p.most, int64(size))
}

func (p *possible) sync() {
	p.bytes = nil
	for _, v := range p.now {
		p.bytes = append(p.bytes, values{})
		p.bytes[len(p.bytes)-1].add(v)
	}
	p.durable = int64(len(p.now))
	p.least, p.most = p.durable, p.durable
}

func (p *possible) check(got []byte) error {
	if n := int64(len(got)); n < p.least || n > p.most {
		return fmt.Errorf("size %d, was from %d to %d", n, p.least, p.most)
	}
	for i, v := range got {
		allowed := i >= len(p.bytes) && v == 0 || i < len(p.bytes) && p.bytes[i].has(v)
		if !allowed {
			return fmt.Errorf("byte %d is %d, and never was; synced were %d", i, v, p.durable)
		}
	}
	return nil
}

// Whatever is done to a file, what a crash leaves of it it has had since its
// last sync, byte by byte; and what is read before the crash is what was
// written.
func TestCrashLeavesOnlyWhatWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(rapid.Uint64().Draw(t, "seed"))
		file := create(t, m, "/a")
		check(t, m.SyncDir("/"))
		model := &possible{}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "fill")}, rapid.SampledFrom([]int{1, 100, 512, 3000, 9000}).Draw(t, "size"))
				write(t, file, int64(len(model.now)), b)
				model.write(b, len(model.now))
			},
			"overwrite": func(t *rapid.T) {
				b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "fill")}, rapid.SampledFrom([]int{1, 32, 700, 5000}).Draw(t, "size"))
				at := rapid.IntRange(0, len(model.now)+5000).Draw(t, "at")
				write(t, file, int64(at), b)
				model.write(b, at)
			},
			"truncate": func(t *rapid.T) {
				size := rapid.IntRange(0, len(model.now)+2000).Draw(t, "size")
				check(t, file.Truncate(int64(size)))
				model.truncate(size)
			},
			"sync": func(t *rapid.T) {
				check(t, file.Sync())
				model.sync()
			},
			"kill": func(t *rapid.T) {
				m = m.Kill()
				var err error
				file, err = m.OpenWrite("/a")
				check(t, err)
			},
			"": func(t *rapid.T) {
				if got, _ := content(t, m, "/a"); !bytes.Equal(got, model.now) {
					t.Fatalf("content is not what was written")
				}
				got, ok := content(t, m.Clone().Crash(rapid.Uint64().Draw(t, "crash")), "/a")
				if !ok {
					t.Fatalf("the file is gone")
				}
				if err := model.check(got); err != nil {
					t.Fatalf("after a crash: %v", err)
				}
			},
		})
	})
}

// crashes collects what a state may become, over many seeds.
func crashes(t *testing.T, m *Mem, look func(disk *Mem) string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for seed := range uint64(500) {
		seen[look(m.Clone().Crash(seed))]++
	}
	return seen
}

func wantSeen(t *testing.T, seen map[string]int, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("seen %v, want %q", seen, want)
	}
}

func TestNamesAfterACrash(t *testing.T) {
	names := func(disk *Mem) string {
		list, err := disk.List("/")
		check(t, err)
		return fmt.Sprint(list)
	}
	m := New(1)
	closed(t, create(t, m, "/a"))
	closed(t, create(t, m, "/b"))
	wantSeen(t, crashes(t, m, names), "[]", "[a]", "[b]", "[a b]")

	check(t, m.SyncDir("/"))
	wantSeen(t, crashes(t, m, names), "[a b]")

	check(t, m.Remove("/a"))
	wantSeen(t, crashes(t, m, names), "[a b]", "[b]")

	check(t, m.SyncDir("/"))
	check(t, m.Rename("/b", "/c"))
	wantSeen(t, crashes(t, m, names), "[b]", "[c]")

	check(t, m.SyncDir("/"))
	check(t, m.Mkdir("/d"))
	closed(t, create(t, m, "/d/e"))
	check(t, m.SyncDir("/d"))
	wantSeen(t, crashes(t, m, names), "[c]", "[c d]")
}

func TestRenameOverAFileLeavesEither(t *testing.T) {
	m := New(1)
	check(t, fs.WriteDurable(m, "/a", []byte("old")))
	file := create(t, m, "/b")
	write(t, file, 0, []byte("new"))
	check(t, file.Sync())
	check(t, m.Rename("/b", "/a"))
	wantSeen(t, crashes(t, m, func(disk *Mem) string {
		b, _ := content(t, disk, "/a")
		return string(b)
	}), "old", "new")
}

func TestRenameOfUnsyncedContentMayLeaveAnEmptyFile(t *testing.T) {
	m := New(1)
	file := create(t, m, "/b")
	write(t, file, 0, []byte("new"))
	check(t, m.Rename("/b", "/a"))
	check(t, m.SyncDir("/"))
	seen := crashes(t, m, func(disk *Mem) string {
		b, _ := content(t, disk, "/a")
		return string(b)
	})
	if seen[""] == 0 || seen["\x00\x00\x00"] == 0 || seen["new"] == 0 {
		t.Errorf("seen %v", seen)
	}
}

func TestRenameAcrossDirectories(t *testing.T) {
	m := New(1)
	check(t, fs.MkdirDurable(m, "/d"))
	check(t, fs.WriteDurable(m, "/a", []byte("x")))
	check(t, m.Rename("/a", "/d/a"))
	wantSeen(t, crashes(t, m, func(disk *Mem) string {
		_, old := content(t, disk, "/a")
		b, now := content(t, disk, "/d/a")
		return fmt.Sprintln(old, now, string(b))
	}), "false false \n", "false true x\n", "true false \n", "true true x\n")
}

// An appended page may be there, be lost, be zeros, or be torn at a sector, in
// the middle of a file as at its end.
func TestPagesAfterACrash(t *testing.T) {
	m := New(1)
	file := create(t, m, "/a")
	check(t, m.SyncDir("/"))
	write(t, file, 0, bytes.Repeat([]byte{1}, pageSize))
	check(t, file.Sync())
	write(t, file, pageSize, bytes.Repeat([]byte{2}, 2*pageSize))
	seen := crashes(t, m, func(disk *Mem) string {
		b, _ := content(t, disk, "/a")
		if !bytes.Equal(b[:pageSize], bytes.Repeat([]byte{1}, pageSize)) {
			return "synced page lost"
		}
		state := ""
		for page := range slices.Chunk(b[pageSize:], pageSize) {
			state += pageState(page)
		}
		return state
	})
	for _, want := range []string{"", "whole whole ", "zeros zeros ", "zeros whole ", "whole zeros ", "torn torn ", "whole torn ", "short "} {
		if seen[want] == 0 {
			t.Errorf("%q never seen: %v", want, seen)
		}
	}
	for _, never := range []string{"synced page lost", "inside a sector"} {
		if seen[never] > 0 {
			t.Errorf("%q seen", never)
		}
	}
}

func pageState(page []byte) string {
	if len(page) < pageSize {
		return "short "
	}
	whole := 0
	for sector := range slices.Chunk(page, sectorSize) {
		switch bytes.Count(sector, []byte{2}) {
		case sectorSize:
			whole++
		case 0:
		default:
			return "inside a sector"
		}
	}
	switch whole {
	case 0:
		return "zeros "
	case pageSize / sectorSize:
		return "whole "
	}
	return "torn "
}

// A page written twice since its sync may be found as it was in between.
func TestWriteBackBetweenWrites(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(500) {
		m := New(seed)
		file := create(t, m, "/a")
		write(t, file, 0, []byte("old"))
		check(t, file.Sync())
		check(t, m.SyncDir("/"))
		write(t, file, 0, []byte("mid"))
		write(t, file, 0, []byte("new"))
		b, _ := content(t, m.Crash(seed), "/a")
		seen[string(b)]++
	}
	wantSeen(t, seen, "old", "mid", "new")
}

func TestTruncationAfterACrash(t *testing.T) {
	m := New(1)
	file := create(t, m, "/a")
	write(t, file, 0, []byte("abcd"))
	check(t, file.Sync())
	check(t, m.SyncDir("/"))
	check(t, file.Truncate(2))
	seen := crashes(t, m, func(disk *Mem) string {
		b, _ := content(t, disk, "/a")
		return string(b)
	})
	if seen["ab"] == 0 || seen["abcd"] == 0 {
		t.Errorf("seen %v", seen)
	}
	check(t, file.Sync())
	wantSeen(t, crashes(t, m, func(disk *Mem) string {
		b, _ := content(t, disk, "/a")
		return string(b)
	}), "ab")
}

func TestOneSeedOneDisk(t *testing.T) {
	build := func() *Mem {
		m := New(7)
		for i := range 20 {
			file := create(t, m, fmt.Sprintf("/%d", i))
			write(t, file, 0, bytes.Repeat([]byte{byte(i + 1)}, 100*i))
			if i%3 == 0 {
				check(t, file.Sync())
			}
		}
		return m
	}
	for seed := range uint64(50) {
		a, b := build().Crash(seed), build().Crash(seed)
		list, err := a.List("/")
		check(t, err)
		other, err := b.List("/")
		check(t, err)
		if !slices.Equal(list, other) {
			t.Fatalf("seed %d: %q and %q", seed, list, other)
		}
		for _, name := range list {
			x, _ := content(t, a, name)
			y, _ := content(t, b, name)
			if !bytes.Equal(x, y) {
				t.Fatalf("seed %d: %s differs", seed, name)
			}
		}
	}
}

// A disk that was found is durable as it is: a second power loss without a
// write changes nothing.
func TestCrashTwice(t *testing.T) {
	for seed := range uint64(100) {
		m := New(seed)
		file := create(t, m, "/a")
		write(t, file, 0, bytes.Repeat([]byte{1}, 10000))
		first := m.Crash(seed)
		want, ok := content(t, first, "/a")
		got, again := content(t, first.Crash(seed+1), "/a")
		if ok != again || !bytes.Equal(got, want) {
			t.Fatalf("seed %d", seed)
		}
	}
}
