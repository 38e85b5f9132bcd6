package cache

import (
	"fmt"
	"testing"
)

func benchKeys(b *testing.B) (*Cache, [][]byte, []byte) {
	c, _ := newCache(Config{})
	keys := make([][]byte, 4096)
	value := make([]byte, 256)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "session/%08d/profile", i)
		if _, err := c.Put(keys[i], value, TTL{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	return c, keys, value
}

func BenchmarkGet(b *testing.B) {
	c, keys, _ := benchKeys(b)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, ok, _ := c.Get(keys[i%len(keys)]); !ok {
				b.Error("miss")
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	c, keys, value := benchKeys(b)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := c.Put(keys[i%len(keys)], value, TTL{}); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkPutEvicting(b *testing.B) {
	c, _ := newCache(Config{MaxEntries: 10_000})
	value := make([]byte, 256)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := c.Put(fmt.Appendf(nil, "%d", i), value, TTL{}); err != nil {
			b.Fatal(err)
		}
	}
}
