// Package commitref measures what a disk allows: a bare group commit in this
// process, with no server, no protocol and no log format around it.
package commitref

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/felixlog/felix/bench/internal/measure"
)

// A Spec is a run of writers that each wait for their record to be on disk.
type Spec struct {
	// Dir is where the file is written, and removed afterwards.
	Dir         string         `json:"dir"`
	Phases      measure.Phases `json:"phases"`
	Writers     int            `json:"writers"`
	RecordBytes int            `json:"record_bytes"`
}

// Run appends records through one committer: it takes what has gathered,
// writes it in one call, syncs the data and wakes those whose records it was.
func Run(ctx context.Context, spec Spec) (r measure.Result, err error) {
	f, err := os.Create(filepath.Join(spec.Dir, "group-commit"))
	if err != nil {
		return measure.Result{}, fmt.Errorf("create file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	c := newCommitter(f)
	defer c.stop()
	record := make([]byte, spec.RecordBytes)
	r, err = measure.ClosedLoop(ctx, spec.Phases, spec.Writers, spec.RecordBytes, func(context.Context, int) error {
		return c.commit(record)
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "%d writers in one process, one file, write and data sync a round", spec.Writers)
	return r, nil
}

// A committer is one file and the round that gathers for it.
type committer struct {
	file *os.File

	mu      sync.Mutex
	work    sync.Cond
	round   *round
	stopped bool
	ended   chan struct{}
}

// A round is what one write and one sync make durable.
type round struct {
	bytes []byte
	done  chan struct{}
	err   error
}

func newCommitter(f *os.File) *committer {
	c := &committer{file: f, round: newRound(), ended: make(chan struct{})}
	c.work.L = &c.mu
	go c.run()
	return c
}

func newRound() *round { return &round{done: make(chan struct{})} }

// commit returns when record is on disk.
func (c *committer) commit(record []byte) error {
	c.mu.Lock()
	r := c.round
	if len(r.bytes) == 0 {
		c.work.Signal()
	}
	r.bytes = append(r.bytes, record...)
	c.mu.Unlock()
	<-r.done
	return r.err
}

func (c *committer) run() {
	defer close(c.ended)
	var spare []byte
	for {
		c.mu.Lock()
		for len(c.round.bytes) == 0 && !c.stopped {
			c.work.Wait()
		}
		if c.stopped {
			c.mu.Unlock()
			return
		}
		r := c.round
		c.round = newRound()
		c.round.bytes = spare[:0]
		c.mu.Unlock()
		if _, r.err = c.file.Write(r.bytes); r.err == nil {
			r.err = syncData(c.file)
		}
		spare = r.bytes
		close(r.done)
	}
}

func (c *committer) stop() {
	c.mu.Lock()
	c.stopped = true
	c.work.Signal()
	c.mu.Unlock()
	<-c.ended
}
