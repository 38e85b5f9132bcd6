package shardlog

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/felixlog/felix/storage/fs"
)

// wallClock is the real one.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }
func (wallClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// bareCommit is the least a group commit can be: one committer, two buffers, a
// write and an fdatasync per round, and a channel per waiter. It has no format.
type bareCommit struct {
	mu      sync.Mutex
	buf     []byte
	waiting []chan struct{}
	spare   []byte
	spareW  []chan struct{}
	running bool
	file    *os.File
	at      int64
	b       *testing.B
}

func (c *bareCommit) append(record []byte, woken chan struct{}) {
	c.mu.Lock()
	c.buf = append(c.buf, record...)
	c.waiting = append(c.waiting, woken)
	if !c.running {
		c.running = true
		go c.commit()
	}
	c.mu.Unlock()
	<-woken
}

func (c *bareCommit) commit() {
	for {
		c.mu.Lock()
		buf, waiting := c.buf, c.waiting
		if len(buf) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.buf, c.waiting = c.spare[:0], c.spareW[:0]
		c.mu.Unlock()
		if _, err := c.file.WriteAt(buf, c.at); err != nil {
			c.b.Error(err)
		}
		c.at += int64(len(buf))
		if err := unix.Fdatasync(int(c.file.Fd())); err != nil {
			c.b.Error(err)
		}
		for _, w := range waiting {
			w <- struct{}{}
		}
		c.spare, c.spareW = buf, waiting
	}
}

// BenchmarkAppend compares on_commit appends of one record of 1 KiB, each
// waited for, with the bare group commit on the same file system. The ratio is
// what counts: run both of a line in one go.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("bare/writers=%d", writers), func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			c := &bareCommit{file: file, b: b}
			record := make([]byte, 1<<10)
			run(b, writers, func() func() {
				woken := make(chan struct{}, 1)
				return func() { c.append(record, woken) }
			})
		})
		b.Run(fmt.Sprintf("log/writers=%d", writers), func(b *testing.B) {
			l, err := Open(fs.OS(), filepath.Join(b.TempDir(), "log"), Options{Name: "b", Fsync: OnCommit, Clock: wallClock{}})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			e := entry(string(make([]byte, 1<<10)))
			run(b, writers, func() func() {
				return func() {
					if _, err := l.AppendWait(e); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(l.metrics.AppendBatches.Load())/float64(max(l.metrics.Syncs.Load(), 1)), "rec/sync")
		})
	}
}

// run has writers share b.N calls.
func run(b *testing.B, writers int, writer func() func()) {
	b.ReportAllocs()
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		n := b.N / writers
		if w < b.N%writers {
			n++
		}
		call := writer()
		wg.Go(func() {
			for range n {
				call()
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rec/s")
}
