package storage

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

// LowSpaceError is why appends to streams are refused before the disk is full.
type LowSpaceError struct {
	Root string
	// Free is how many bytes there were when it was last looked at, Wanted how
	// many there must be.
	Free, Wanted uint64
}

func (e *LowSpaceError) Error() string {
	return fmt.Sprintf("%d bytes are free under %s, fewer than the %d kept back", e.Free, e.Root, e.Wanted)
}

// A freeSpace looks at the free space of the store from time to time.
type freeSpace struct {
	fs     fs.FS
	root   string
	wanted uint64
	clock  shardlog.Clock
	logger *slog.Logger
	// low is nil while there is enough.
	low atomic.Pointer[LowSpaceError]

	mu      sync.Mutex
	stopped bool
	cancel  func() bool
}

// watchFreeSpace begins to look; with wanted 0 it never does.
func watchFreeSpace(f fs.FS, root string, wanted uint64, clock shardlog.Clock, logger *slog.Logger) *freeSpace {
	s := &freeSpace{fs: f, root: root, wanted: wanted, clock: clock, logger: logger}
	if wanted > 0 {
		s.look()
	}
	return s
}

// look compares what is free with what is wanted, and arranges for the next
// look.
func (s *freeSpace) look() {
	free, err := s.fs.Free(s.root)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	was := s.low.Load()
	switch {
	case err != nil: // not known is not low: the disk itself still refuses
		s.low.Store(nil)
	case free < s.wanted:
		s.low.Store(&LowSpaceError{Root: s.root, Free: free, Wanted: s.wanted})
	default:
		s.low.Store(nil)
	}
	switch is := s.low.Load(); {
	case was == nil && is != nil:
		s.logger.Error("appends to streams are refused: little space is free", "root", s.root, "free_bytes", is.Free, "wanted_bytes", is.Wanted)
	case was != nil && is == nil:
		s.logger.Info("appends to streams are taken again: space was freed", "root", s.root)
	}
	s.cancel = s.clock.AfterFunc(checkEvery, s.look)
}

// stop ends the looking.
func (s *freeSpace) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.cancel != nil {
		s.cancel()
	}
}

// admit refuses an append to a log while too little is free.
func (s *Store) admit(log string) error {
	if low := s.space.low.Load(); low != nil {
		s.metrics.Full.Add(1)
		return &shardlog.FullError{Log: log, Op: "append", Err: low}
	}
	return nil
}

// err is a *LowSpaceError while too little is free.
func (s *freeSpace) err() error {
	if low := s.low.Load(); low != nil {
		return low
	}
	return nil
}
