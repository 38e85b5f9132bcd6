// Package coalesce writes for many goroutines on one stream.
package coalesce

import (
	"io"
	"sync"
)

// A Writer lets whoever finds the stream idle write, and gathers what others
// bring meanwhile into that goroutine's next write: no hand-off, and no wait
// when there is nothing to gather. What is gathered is bounded by its
// callers, each of whom waits for an answer before the next call.
type Writer struct {
	// W is the stream.
	W io.Writer
	// Try, if set, is what an idle stream is offered first: it takes all of
	// b without blocking or fails and takes nothing, as Felix's client asks
	// of QUIC. What it refuses is written.
	Try func(b []byte) error

	mu      sync.Mutex
	pending []byte
	spare   []byte
	writing bool
	err     error
}

// Write appends b to what is to be written and returns when b is written or
// another goroutine has taken it on. It calls queued, if set, when the place
// of b among all writes is settled and before its answer can come. After a
// failed write every call fails.
func (c *Writer) Write(b []byte, queued func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if queued != nil {
		queued()
	}
	if !c.writing && c.Try != nil && c.Try(b) == nil {
		return nil
	}
	c.pending = append(c.pending, b...)
	if c.writing {
		return nil
	}
	c.writing = true
	for len(c.pending) > 0 && c.err == nil {
		out := c.pending
		c.pending = c.spare[:0]
		c.mu.Unlock()
		_, err := c.W.Write(out)
		c.mu.Lock()
		c.spare, c.err = out, err
	}
	c.writing = false
	return c.err
}
