package kvlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
)

var cacheVectors = []struct {
	name, hex string
	record    CacheRecord
}{
	{"put", "0100" + "0000000000000000" + "01000000" + "6b" + "76", CacheRecord{Key: []byte("k"), Value: []byte("v")}},
	{"put with deadline", "0100" + "0807060504030201" + "02000000" + "6b31" + "00ff",
		CacheRecord{ExpiresAtMillis: 0x0102030405060708, Key: []byte("k1"), Value: []byte{0, 0xff}}},
	{"put of nothing", "0100" + "0000000000000000" + "01000000" + "6b", CacheRecord{Key: []byte("k"), Value: []byte{}}},
	{"copy", "0200" + "0a00000000000000" + "01000000" + "0700000000000000" + "6b" + "76",
		CacheRecord{ExpiresAtMillis: 10, Carried: true, Version: 7, Key: []byte("k"), Value: []byte("v")}},
	{"delete", "0101" + "0000000000000000" + "02000000" + "c3a9", CacheRecord{Op: Deleted, Key: []byte("é")}},
	{"expired", "0102" + "0000000000000000" + "01000000" + "6b", CacheRecord{Op: Expired, Key: []byte("k")}},
}

func TestCacheRecordVectors(t *testing.T) {
	for _, v := range cacheVectors {
		want, err := hex.DecodeString(v.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.record.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", v.name, got, want)
		}
		got, err := ParseCacheRecord(want)
		if err != nil || !reflect.DeepEqual(got, v.record) {
			t.Errorf("%s: parsed %+v, %v", v.name, got, err)
		}
	}
}

func TestMalformedCacheRecordsAreRefused(t *testing.T) {
	for name, h := range map[string]string{
		"empty":               "",
		"short":               "010000000000000000000000",
		"version 0":           "0000" + "0000000000000000" + "01000000" + "6b",
		"version 3":           "0300" + "0000000000000000" + "01000000" + "6b",
		"unknown op":          "0103" + "0000000000000000" + "01000000" + "6b",
		"no key":              "0100" + "0000000000000000" + "00000000" + "76",
		"key past the end":    "0100" + "0000000000000000" + "02000000" + "6b",
		"key of 4 GiB":        "0100" + "0000000000000000" + "ffffffff" + "6b",
		"key not UTF-8":       "0100" + "0000000000000000" + "01000000" + "ff",
		"expiry past int64":   "0100" + "0000000000000080" + "01000000" + "6b",
		"copy cut":            "0200" + "0000000000000000" + "01000000" + "00000000",
		"delete with value":   "0101" + "0000000000000000" + "01000000" + "6b76",
		"delete with expiry":  "0101" + "0100000000000000" + "01000000" + "6b",
		"delete as a copy":    "0201" + "0000000000000000" + "01000000" + "0000000000000000" + "6b",
		"expired with a copy": "0202" + "0000000000000000" + "01000000" + "0000000000000000" + "6b",
	} {
		b, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		var malformed *RecordError
		if r, err := ParseCacheRecord(b); !errors.As(err, &malformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func FuzzCacheRecord(f *testing.F) {
	for _, v := range cacheVectors {
		f.Add(v.record.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseCacheRecord(b)
		if err != nil {
			return
		}
		if got := r.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x reads as %+v and writes as %x", b, r, got)
		}
	})
}

var counterVectors = []struct {
	name, hex string
	record    CounterRecord
}{
	{"delta", "0100" + "ffffffffffffffff" + "01000000" + "6b", CounterRecord{Value: -1, Key: []byte("k")}},
	{"checkpoint", "0101" + "0200000000000000" + "02000000" + "6b31", CounterRecord{Op: Checkpoint, Value: 2, Key: []byte("k1")}},
}

func TestCounterRecordVectors(t *testing.T) {
	for _, v := range counterVectors {
		want, err := hex.DecodeString(v.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.record.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", v.name, got, want)
		}
		got, err := ParseCounterRecord(want)
		if err != nil || !reflect.DeepEqual(got, v.record) {
			t.Errorf("%s: parsed %+v, %v", v.name, got, err)
		}
	}
}

func TestMalformedCounterRecordsAreRefused(t *testing.T) {
	for name, h := range map[string]string{
		"short":            "01000000000000000000010000",
		"version":          "0200" + "0000000000000000" + "01000000" + "6b",
		"op":               "0102" + "0000000000000000" + "01000000" + "6b",
		"bytes behind":     "0100" + "0000000000000000" + "01000000" + "6b6b",
		"key past the end": "0100" + "0000000000000000" + "02000000" + "6b",
		"key not UTF-8":    "0100" + "0000000000000000" + "01000000" + "80",
	} {
		b, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		var malformed *RecordError
		if r, err := ParseCounterRecord(b); !errors.As(err, &malformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func FuzzCounterRecord(f *testing.F) {
	for _, v := range counterVectors {
		f.Add(v.record.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseCounterRecord(b)
		if err != nil {
			return
		}
		if got := r.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x reads as %+v and writes as %x", b, r, got)
		}
	})
}
