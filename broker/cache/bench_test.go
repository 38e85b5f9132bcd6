package cache

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/storage/fs"
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
			if _, ok, _ := c.Get(0, keys[i%len(keys)]); !ok {
				b.Error("miss")
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	c, keys, value := benchKeys(b)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			c.Write(0, Write{Key: keys[i%len(keys)], Value: value}, ignored{})
		}
	})
}

func BenchmarkPutEvicting(b *testing.B) {
	c, _ := newCache(Config{MaxEntries: 10_000})
	value := make([]byte, 256)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Write(0, Write{Key: fmt.Appendf(nil, "%d", i), Value: value}, ignored{})
	}
}

func BenchmarkGetOnLog(b *testing.B) {
	c := newDiskOn(b, fs.OS(), b.TempDir(), Config{}).cache("c", 1)
	key := []byte("session/00000001/profile")
	if _, err := c.Put(key, make([]byte, 256), TTL{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, _ := c.Get(0, key); !ok {
			b.Fatal("miss")
		}
	}
}

func BenchmarkPutOnLog(b *testing.B) {
	d := newDiskOn(b, fs.OS(), b.TempDir(), Config{})
	c := d.cache("c", 1)
	value := make([]byte, 256)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := c.Put(fmt.Appendf(nil, "session/%08d", i%4096), value, TTL{}); err != nil {
				b.Error(err)
			}
		}
	})
}
