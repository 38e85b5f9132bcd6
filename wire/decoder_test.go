package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestDecoderReuse reads every sample twice with one Decoder, in both orders,
// and holds each against a fresh parse.
func TestDecoderReuse(t *testing.T) {
	samples := loadSamples(t)
	var d Decoder
	for round := range 2 {
		for i := range samples {
			sample := samples[i]
			if round == 1 {
				sample = samples[len(samples)-1-i]
			}
			payload := []byte(sample)
			got, err := d.Decode(payload)
			want, _ := ParseMessage([]byte(sample))
			clear(payload) // the message may not lie in the payload
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v", sample, got, err)
			}
			if _, err := d.Decode([]byte(sample[:len(sample)-1])); err == nil {
				t.Errorf("%s: accepted without its end", sample)
			}
		}
	}
}

func TestMessagesOwnTheirMemory(t *testing.T) {
	for _, sample := range loadSamples(t) {
		payload := []byte(sample)
		m, err := ParseMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		clear(payload)
		if got := string(AppendMessage(nil, m)[HeaderSize:]); got != sample {
			t.Errorf("%s\nbecame %s", sample, got)
		}
	}
}

// TestEmptyIsNotAbsent: an empty key or value is there, and not nil.
func TestEmptyIsNotAbsent(t *testing.T) {
	payload := []byte(`{"type":"cache_value","tenant_id":"","namespace":"","cache":"","key":"","value":""}`)
	parsed, err := ParseMessage(payload)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := new(Decoder).Decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Message{parsed, decoded} {
		v := m.(*CacheValue)
		if v.Key == nil || !v.Value.Set || v.Value.Value == nil {
			t.Errorf("%#v", v)
		}
	}
	miss := &CacheValue{Key: []byte("k")}
	if got := string(AppendMessage(nil, miss)); !strings.Contains(got, `"value":null`) {
		t.Errorf("a miss is written %s", got)
	}
	empty := &CacheValue{Key: []byte("k"), Value: Some[[]byte](nil)}
	if got := string(AppendMessage(nil, empty)); !strings.Contains(got, `"value":""`) {
		t.Errorf("an empty value is written %s", got)
	}
}

func TestDecoderInterns(t *testing.T) {
	var d Decoder
	get := func(tenant, cache string) *CacheGet {
		t.Helper()
		m, err := d.Decode(AppendMessage(nil, &CacheGet{Tenant: tenant, Namespace: "n", Cache: cache, Key: []byte("k")})[HeaderSize:])
		if err != nil {
			t.Fatal(err)
		}
		g := *m.(*CacheGet)
		if g.Tenant != tenant || g.Namespace != "n" || g.Cache != cache {
			t.Fatalf("%+v", g)
		}
		return &g
	}
	one, other, again := get("t", "c"), get("u", "d"), get("t", "c")
	if unsafe.StringData(one.Tenant) != unsafe.StringData(again.Tenant) || unsafe.StringData(one.Cache) != unsafe.StringData(again.Cache) {
		t.Error("equal names are different strings")
	}
	if other.Tenant != "u" {
		t.Error("a name changed afterwards")
	}
	for i := range 10_000 {
		get("t", fmt.Sprint("cache", i))
		if len(d.names.names) > maxInterned {
			t.Fatalf("%d names are kept", len(d.names.names))
		}
	}
	get(strings.Repeat("t", MaxName+1), "c")
	for name := range d.names.names {
		if len(name) > MaxName {
			t.Error("a name that cannot be valid is kept")
		}
	}
}

// TestDecoderScratch: large values do not stay.
func TestDecoderScratch(t *testing.T) {
	var d Decoder
	put := func(n int) {
		t.Helper()
		value := bytes.Repeat([]byte("v"), n)
		key := bytes.Repeat([]byte("k\n"), n/2) // escaped
		m, err := d.Decode(AppendMessage(nil, &CachePut{Tenant: "t", Key: key, Value: value})[HeaderSize:])
		if err != nil || !bytes.Equal(m.(*CachePut).Value, value) || !bytes.Equal(m.(*CachePut).Key, key) {
			t.Fatalf("put of %d bytes: %v", n, err)
		}
		if cap(d.scratch) > 2*maxKeptScratch || cap(d.s.scratch) > maxKeptScratch {
			t.Errorf("after %d bytes: scratch of %d and %d bytes", n, cap(d.scratch), cap(d.s.scratch))
		}
	}
	for _, n := range []int{10, 1 << 20, 10, 100 << 10, 200 << 10, 300 << 10, 10} {
		put(n)
	}
	put(1 << 20)
	d.Release()
	if d.own.cachePut.Value != nil || d.own.cachePut.Key != nil {
		t.Error("a released value is still held")
	}
	put(10)
}
