package recorder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/felixlog/felix/conformance/raw"
)

// A Kind says what an [Entry] records.
type Kind string

// What the log records.
const (
	KindConnected Kind = "connected"
	KindClosed    Kind = "closed"
	KindIn        Kind = "in"
	KindOut       Kind = "out"
	KindFIN       Kind = "fin"
	KindReset     Kind = "reset"
)

// An Entry is one thing the server saw or did.
type Entry struct {
	// At is the time since the server started.
	At time.Duration
	// Conn numbers connections from 1 in order of arrival.
	Conn int
	// Stream is the QUIC stream id, Uni whether it goes one way only.
	Stream int64
	Uni    bool
	Kind   Kind
	Frame  raw.Frame
	Note   string
}

// String prints an entry on one line.
func (e Entry) String() string {
	where := fmt.Sprintf("conn %d", e.Conn)
	switch {
	case e.Kind == KindConnected || e.Kind == KindClosed:
	case e.Uni:
		where += fmt.Sprintf(" uni %d", e.Stream)
	default:
		where += fmt.Sprintf(" bidi %d", e.Stream)
	}
	what := e.Note
	if e.Kind == KindIn || e.Kind == KindOut {
		what = e.Frame.Describe()
	}
	return fmt.Sprintf("%8.3f %-16s %-9s %s", e.At.Seconds(), where, e.Kind, what)
}

func (s *Server) record(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.At = time.Since(s.started)
	s.log = append(s.log, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Log is everything recorded so far.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Frames are the frames received so far that satisfy keep; nil keeps all.
func (s *Server) Frames(keep func(Entry) bool) []Entry {
	return slices.DeleteFunc(s.Log(), func(e Entry) bool {
		return e.Kind != KindIn || keep != nil && !keep(e)
	})
}

// WaitLog waits until an entry satisfies match and returns the first such one
// from the given place of the log on.
func (s *Server) WaitLog(ctx context.Context, from int, match func(Entry) bool) (Entry, error) {
	for {
		s.mu.Lock()
		log, changed := s.log, s.changed
		s.mu.Unlock()
		for ; from < len(log); from++ {
			if match(log[from]) {
				return log[from], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Entry{}, ctx.Err()
		}
	}
}
