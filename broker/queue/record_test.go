package queue

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/felixlog/felix/storage/kvlog"
)

// The bytes on disk are these and stay these.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{mark{}.append(nil), "00" + "0000000000000000" + "0000000000000000"},
		{mark{handed: 7}.append(nil), "00" + "0000000000000000" + "0000000000000007"},
		{mark{has: true, committed: 1 << 40, handed: math.MaxUint64}.append(nil), "01" + "0000010000000000" + "ffffffffffffffff"},
		{appendCount(nil, 2), "00000002"},
		{recordKey("g", 10), "671f3130"},
		{recordKey("g", math.MaxUint64), "671f" + hex.EncodeToString([]byte("18446744073709551615"))},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestMalformedRecordsAreNotGuessed(t *testing.T) {
	for name, b := range map[string]string{
		"empty": "", "short": "00000000000000000000000000000000", "long": "000000000000000000000000000000000000",
		"unknown flag": "0200000000000000000000000000000000", "position without flag": "0000000000000000010000000000000000",
		"the eight bytes of others": "0000000000000001",
	} {
		raw, _ := hex.DecodeString(b)
		if m, err := parseMark(raw); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, b := range [][]byte{nil, {2}, {0, 0, 0, 0}, {0, 0, 0, 2, 0}} {
		if n, err := parseCount(b); err == nil {
			t.Errorf("count %v: %d", b, n)
		}
	}
	for _, s := range []string{"x", "redrive", "redriven ", "Redriven"} {
		if _, err := parseLetter([]byte(s)); err == nil {
			t.Errorf("letter %q", s)
		}
	}
	for _, s := range []string{"g\x1f", "g\x1f01", "g\x1f-1", "g\x1f+1", "g\x1f1_0", "g\x1f18446744073709551616", "g\x1f 1", "h\x1f1", "g1"} {
		if offset, err := parseRecordKey([]byte(s), recordPrefix("g")); err == nil {
			t.Errorf("key %q: %d", s, offset)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(mark{has: true, committed: 5, handed: 9}.append(nil))
	f.Add(mark{handed: 9}.append(nil))
	f.Add(appendCount(nil, 3))
	f.Add([]byte(redriven))
	f.Add(recordKey("g", 77))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseMark(b); err == nil && !bytes.Equal(m.append(nil), b) {
			t.Errorf("mark %x is written as %x", b, m.append(nil))
		}
		if n, err := parseCount(b); err == nil && !bytes.Equal(appendCount(nil, n), b) {
			t.Errorf("count %x is written as %x", b, appendCount(nil, n))
		}
		if is, err := parseLetter(b); err == nil && is != (string(b) == redriven) {
			t.Errorf("letter %q: %v", b, is)
		}
		if offset, err := parseRecordKey(b, recordPrefix("g")); err == nil && !bytes.Equal(recordKey("g", offset), b) {
			t.Errorf("key %q is written as %q", b, recordKey("g", offset))
		}
	})
}

// What does not make sense on disk refuses the group by name and place, and no
// other.
func TestAMalformedRecordRefusesItsGroup(t *testing.T) {
	for name, w := range map[string]struct {
		letter     bool
		key, value string
	}{
		"position":  {key: "bad", value: "12345678"},
		"attempts":  {key: "bad\x1f3", value: "\x00\x00\x00\x00"},
		"no offset": {key: "bad\x1fthree", value: "\x00\x00\x00\x02"},
		"letter":    {letter: true, key: "bad\x1f3", value: "given up"},
	} {
		n := newNode(t, Config{})
		sh := n.stream("s")
		n.fill(sh, 2)
		good := n.ref(sh, "good")
		inner, err := n.shardOf(sh)
		n.must(err)
		part := &inner.marks
		if w.letter {
			part = &inner.letters
		}
		_, err = part.Opened().Index.WriteWait(kvlog.Write{Key: []byte(w.key), Value: []byte(w.value)})
		n.must(err)
		for range 2 {
			err = n.Ready(t.Context(), Ref{Shard: sh, Group: "bad"})
			if !isA[*UnavailableError](err) || !isA[*RecordError](err) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		n.takes(good, 2, "0 1")
		if groups := n.Stats().Groups; groups != 1 {
			t.Fatalf("%s: %d groups in memory", name, groups)
		}
	}
}
