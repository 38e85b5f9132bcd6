package kvlog

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

func benchMap(b *testing.B, mode shardlog.FsyncMode) *Map {
	b.Helper()
	dir := b.TempDir()
	log, err := shardlog.Open(fs.OS(), dir, shardlog.Options{Fsync: mode, Projection: true, Clock: newClock()})
	if err != nil {
		b.Fatal(err)
	}
	m, err := Open(log, Options{Dir: dir, FS: fs.OS(), Clock: newClock()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		m.Close()
		_ = log.Close()
	})
	return m
}

func BenchmarkGet(b *testing.B) {
	m := benchMap(b, shardlog.None)
	value := make([]byte, 256)
	for i := range 1000 {
		if _, err := m.WriteWait(Write{Key: fmt.Append(nil, i), Value: value}); err != nil {
			b.Fatal(err)
		}
	}
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Append(nil, i)
	}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, found, err := m.GetAppend(buf, keys[i%1000]); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}

// BenchmarkPut keeps 64 puts under way.
func BenchmarkPut(b *testing.B) {
	for _, mode := range []shardlog.FsyncMode{shardlog.None, shardlog.OnCommit} {
		b.Run(mode.String(), func(b *testing.B) {
			m := benchMap(b, mode)
			value := make([]byte, 256)
			done := make(answered, 64)
			for range cap(done) {
				done <- answer{}
			}
			b.ReportAllocs()
			var key []byte
			for i := 0; b.Loop(); i++ {
				if a := <-done; a.err != nil {
					b.Fatal(a.err)
				}
				key = fmt.Append(key[:0], i%1000)
				m.Write(Write{Key: key, Value: value}, done)
			}
			for range cap(done) {
				<-done
			}
		})
	}
}
