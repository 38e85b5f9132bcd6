package kvlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
)

var keyIndexPath = filepath.Join(shardDir, KeyIndexName)

func readKeyIndexFile(t fataler, r *rig) []byte {
	t.Helper()
	b, err := fs.ReadFile(r.mem, keyIndexPath, 1<<30)
	if err != nil {
		t.Fatalf("read key index: %v", err)
	}
	return b
}

func sameIndex(t fataler, got, want *index) {
	t.Helper()
	if got.len() != want.len() || got.live != want.live || got.expiring != want.expiring {
		t.Fatalf("%d keys, %d live, %d expiring; want %d, %d, %d", got.len(), got.live, got.expiring, want.len(), want.live, want.expiring)
	}
	for key := range want.byKey {
		if g, w := got.get([]byte(key)), want.get([]byte(key)); g != w {
			t.Fatalf("%q: %+v, want %+v", key, g, w)
		}
	}
}

func TestTheKeyIndexSparesTheReplay(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	fill(t, r, 100)
	r.compact(t)
	x, covered, err := r.m.core.readKeyIndex()
	if err != nil || covered != r.m.Tail() {
		t.Fatalf("covered %d of %d: %v", covered, r.m.Tail(), err)
	}
	sameIndex(t, x, r.m.core.index)
	r.write(t, put("key-001", "behind the index"))
	r.write(t, del("key-002"))
	want := contents(t, r.m)
	r.m.Close()
	before := r.faults.Reads()
	if r.m, err = Open(r.log, r.opts); err != nil {
		t.Fatal(err)
	}
	if reads := r.faults.Reads() - before; reads > 10 {
		t.Errorf("%d reads to open", reads)
	}
	wantContents(t, contents(t, r.m), want)
}

// Whatever byte is damaged, and wherever the file is cut, the index is not
// used, and the map is the same.
func TestADamagedKeyIndexIsNotUsed(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	for i := range 5 {
		r.write(t, put(fmt.Sprint(i), "v").until(r.clock.millis()+int64(i)*1000))
	}
	r.compact(t)
	want := contents(t, r.m)
	good := readKeyIndexFile(t, r)
	refuse := func(what string, b []byte) {
		t.Helper()
		if err := fs.WriteDurable(r.mem, keyIndexPath, b); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.m.core.readKeyIndex(); err == nil {
			t.Fatalf("%s: used", what)
		}
		m, err := Open(r.log, r.opts)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wantContents(t, contents(t, m), want)
		m.Close()
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		refuse(fmt.Sprintf("bit %d of byte %d flipped", i%8, i), b)
		refuse(fmt.Sprintf("cut to %d bytes", i), good[:i])
	}
	refuse("a byte more", append(bytes.Clone(good), 0))
}

// The log was cut back and filled again to the same length: every offset and
// every length fits, and the values are others.
func TestAKeyIndexOfAnotherHistoryIsNotUsed(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("a", "1"))
	r.compact(t)
	base := r.m.Base()
	r.write(t, put("b", "one"))
	r.write(t, put("c", "two"))
	// An index that covers all of it, as a pass without a roll would write.
	if err := r.m.core.writeKeyIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.m.core.readKeyIndex(); err != nil {
		t.Fatal(err)
	}
	old := readKeyIndexFile(t, r)
	tail := r.m.Tail()
	if err := r.log.Truncate(tail - 2); err != nil {
		t.Fatal(err)
	}
	if _, err := r.mem.Stat(keyIndexPath); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the log was cut and the key index is there: %v", err)
	}
	if err := r.m.Reload(); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, r.m, "b")
	r.write(t, put("d", "one"))
	if err := fs.WriteDurable(r.mem, keyIndexPath, old); err != nil { // the removal was lost
		t.Fatal(err)
	}
	if _, _, err := r.m.core.readKeyIndex(); !errors.Is(err, errStale) {
		t.Fatalf("index past the tail: %v", err)
	}
	r.write(t, put("e", "two"))
	if r.m.Tail() != tail || r.m.Base() != base {
		t.Fatal("not the same length")
	}
	if _, _, err := r.m.core.readKeyIndex(); !errors.Is(err, errStale) {
		t.Fatalf("index of another history: %v", err)
	}
	r.reopen(t)
	wantAbsent(t, r.m, "b")
	wantValue(t, r.m, "d", "one")
	// The log was emptied and begins elsewhere.
	if err := r.log.ResetTo(1000); err != nil {
		t.Fatal(err)
	}
	if err := fs.WriteDurable(r.mem, keyIndexPath, old); err != nil {
		t.Fatal(err)
	}
	if err := r.m.Reload(); err != nil {
		t.Fatal(err)
	}
	if r.m.Len() != 0 || r.write(t, put("a", "1")).Version != 1000 {
		t.Fatal("reset log not empty")
	}
}

// The index is written while writers go on. Whatever they do meanwhile, and
// wherever the power fails afterwards, it says what the log says.
func TestAKeyIndexWrittenUnderWriters(t *testing.T) {
	for moment := range 3 {
		r := newRig(t, nil)
		for i := range 3 * walkSlots {
			r.m.Write(put(fmt.Sprintf("%05d", i), "old"), &recorded{})
		}
		settle(t, r)
		gate := fstest.NewGate()
		r.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: KeyIndexName, Skip: moment, Times: 1, Gate: gate})
		written := make(chan error, 1)
		go func() { written <- r.m.core.writeKeyIndex(t.Context()) }()
		<-gate.Arrived()
		for i := 0; i < 3*walkSlots; i += 100 {
			key := fmt.Sprintf("%05d", i)
			switch i / 100 % 5 {
			case 0:
				r.write(t, put(key, "new"))
			case 1:
				r.write(t, del(key))
			case 2:
				r.write(t, del(key))
				r.write(t, put(key, "again"))
			case 3:
				r.write(t, put(key, "new"))
				r.write(t, del(key))
			case 4:
				r.write(t, put("more-"+key, "more"))
			}
		}
		want := contents(t, r.m)
		gate.Open()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		r.die(true, uint64(moment))
		r.open(t)
		if _, covered, err := r.m.core.readKeyIndex(); err != nil || covered == r.m.Tail() {
			t.Fatalf("covered %d: %v", covered, err)
		}
		wantContents(t, contents(t, r.m), want)
		r.die(false, 0)
	}
}

func FuzzKeyIndex(f *testing.F) {
	seed := func(kind byte, entries ...entry) {
		b := keyIndexHead{kind: kind, covered: 7}.append(nil)
		for i := range entries {
			b = appendKeyIndexEntry(b, fmt.Sprintf("key-%d", i), &entries[i])
		}
		b = keyIndexTail{count: uint64(len(entries)), checked: 9, checkCRC: 1}.append(b)
		f.Add(binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), true)
	}
	seed(0)
	seed(0, entry{offset: 1, word: 2, expires: 3, position: 64, segment: 1, length: 100}, entry{offset: 2})
	seed(1, entry{offset: 1, word: 1 << 63, position: 2})
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair && len(b) >= 4 { // to get past the checksum
			b = bytes.Clone(b)
			binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		kind := byte(0)
		if len(b) > 6 {
			kind = b[6] & 1
		}
		head, tail, err := checkKeyIndex(bytes.NewReader(b), int64(len(b)), kind)
		if err != nil {
			return
		}
		again := head.append(nil)
		body := b[keyIndexHeader : len(b)-keyIndexTrailer]
		scan := &keyIndexScan{from: bufio.NewReader(bytes.NewReader(body)), bytes: uint64(len(body)), count: tail.count}
		for {
			e, key, ok, err := scan.next()
			if err != nil {
				return
			}
			if !ok {
				break
			}
			again = appendKeyIndexEntry(again, string(key), &e)
		}
		again = tail.append(again)
		if again = binary.BigEndian.AppendUint32(again, tail.crc); !bytes.Equal(again, b) {
			t.Fatalf("%x writes as %x", b, again)
		}
	})
}

func TestKeyIndexVector(t *testing.T) {
	b := keyIndexHead{kind: 1, covered: 5}.append(nil)
	b = appendKeyIndexEntry(b, "k", &entry{offset: 1, word: 2, expires: 3, segment: 4, position: 5, length: 6})
	b = keyIndexTail{count: 1, checked: 7, checkCRC: 0xdeadbeef}.append(b)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	const want = "46584958" + "0001" + "01" + "00" + "0000000000000005" +
		"00000001" + "0000000000000001" + "0000000000000002" + "0000000000000003" +
		"0000000000000004" + "0000000000000005" + "00000006" + "6b" +
		"0000000000000001" + "0000000000000007" + "deadbeef"
	if got := fmt.Sprintf("%x", b[:len(b)-4]); got != want {
		t.Fatalf("%s\nwant\n%s", got, want)
	}
	if _, _, err := checkKeyIndex(bytes.NewReader(b), int64(len(b)), 1); err != nil {
		t.Fatal(err)
	}
	var malformed *RecordError
	if _, _, err := checkKeyIndex(bytes.NewReader(b), int64(len(b)), 0); !errors.As(err, &malformed) {
		t.Fatalf("taken for a cache's: %v", err)
	}
}
