package storage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/felixlog/felix/storage/shardlog"
)

// Stats is what a store holds at one moment.
type Stats struct {
	// OpenLogs counts the logs that are open, OpeningLogs those being opened.
	OpenLogs, OpeningLogs int
	// Segments and Bytes are those of the open logs.
	Segments int
	Bytes    int64
	// OpenSealed counts the sealed segments that have a descriptor open.
	OpenSealed int64
	// FailedLogs counts open logs that take no writes any more.
	FailedLogs int
	// Full is true while appends to streams are refused for want of space,
	// FreeBytes what was free then.
	Full      bool
	FreeBytes uint64
}

// Stats counts what the store holds. It asks every open log.
func (s *Store) Stats() Stats {
	var out Stats
	for _, sl := range s.all() {
		if sl.purging || sl.wasClosed() {
			continue
		}
		log := sl.open()
		if log == nil {
			out.OpeningLogs++
			continue
		}
		out.OpenLogs++
		out.Segments += len(log.Segments())
		out.Bytes += log.Bytes()
		if log.Err() != nil {
			out.FailedLogs++
		}
	}
	out.OpenSealed = s.metrics.OpenSealedSegments.Load()
	if low := s.space.low.Load(); low != nil {
		out.Full, out.FreeBytes = true, low.Free
	}
	return out
}

// Full reports whether appends to streams are refused because too little space
// is free.
func (s *Store) Full() bool { return s.space.low.Load() != nil }

// Healthy says why the store as a whole is not ready for writes: *LowSpaceError
// while little space is free, and the first logs that take no writes any more.
// It is nil where all is well. Reads go on either way.
func (s *Store) Healthy() error {
	errs := []error{s.space.err()}
	const named = 3
	failed := 0
	for _, sl := range s.all() {
		log := sl.open()
		if log == nil {
			continue
		}
		err := log.Err()
		if err == nil || errors.Is(err, shardlog.ErrClosed) {
			continue
		}
		if failed++; failed <= named {
			errs = append(errs, err)
		}
	}
	if failed > named {
		errs = append(errs, fmt.Errorf("%d more logs take no writes", failed-named))
	}
	return errors.Join(errs...)
}

// all lists the slots, in the order of their names.
func (s *Store) all() []*slot {
	s.mu.Lock()
	out := make([]*slot, 0, len(s.slots))
	for _, sl := range s.slots {
		out = append(out, sl)
	}
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.id.space, b.id.space), cmp.Compare(a.id.key.String(), b.id.key.String()))
	})
	return out
}

// open is the slot's log where it is open.
func (sl *slot) open() *shardlog.Log {
	select {
	case <-sl.done:
		return sl.log
	default:
		return nil
	}
}
