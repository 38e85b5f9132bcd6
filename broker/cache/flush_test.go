package cache

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// A line collects answers of several writes and sends them when it is flushed,
// as a stream's writer does.
type line struct {
	mu            sync.Mutex
	answers       []uint64
	sent, flushes int
	all           int
	done          chan struct{}
}

func (l *line) Written(r Result, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		r.Version = 0
	}
	l.answers = append(l.answers, r.Version)
}

func (l *line) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes++
	l.sent = len(l.answers)
	if l.sent == l.all {
		close(l.done)
	}
}

// The answers of one round of commits come in the order of the writes and
// leave with one flush; an answer given within the call is followed by none.
func TestOneFlushARound(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	d := newFaultyDisk(t, faults)
	c := d.cache("c", 1)
	mustPut(t, c, "k", "v", TTL{})
	const writes = 20
	l := &line{all: writes + 1, done: make(chan struct{})}
	gate := faults.Block(fstest.OpSync, "caches")
	c.Write(0, Write{Key: []byte("first"), Value: []byte("v")}, l)
	<-gate.Arrived()
	for i := range writes {
		c.Write(0, Write{Key: fmt.Append(nil, i), Value: []byte("v")}, l)
	}
	gate.Open()
	select {
	case <-l.done:
	case <-time.After(patience):
		t.Fatal("answers that were not flushed")
	}
	if l.flushes != 2 {
		t.Errorf("%d answers left with %d flushes, want one for each of 2 rounds", l.sent, l.flushes)
	}
	for i := 1; i < len(l.answers); i++ {
		if l.answers[i] <= l.answers[i-1] {
			t.Fatalf("answers out of order: %v", l.answers)
		}
	}
	within := &line{}
	c.Write(0, Write{Op: Delete, Key: []byte("nothing")}, within)
	if len(within.answers) != 1 || within.flushes != 0 {
		t.Errorf("a delete of nothing: %+v", within)
	}
	mustPut(t, c, "k", "w", TTL{}) // a round later
	if within.flushes != 0 {
		t.Error("flushed by a round it had no part in")
	}
}
