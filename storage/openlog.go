package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

// A slot is a log that is open or being opened. It exists once for each
// directory, so that a directory is open at most once.
type slot struct {
	id slotKey
	// uid is what the log was opened for.
	uid string
	// wanted is closed when somebody waits for a log that is opened in the
	// background.
	wanted chan struct{}
	// done is closed when log or err is set.
	done chan struct{}
	log  *shardlog.Log
	err  error
	// urgent is true once wanted is closed; guarded by the store's mu.
	urgent bool
	// purging marks the place of a log that is being removed.
	purging bool
}

// OpenLog returns the log of a shard, which it opens where it is not open:
// callers that ask for the same one at the same time get the same one. At most
// Config.OpenParallel are opened at once, in the order they were asked for.
// An end of ctx ends the waiting, not the opening.
//
// A log that must not be opened is answered with a *segment.CorruptionError, a
// directory of another shard with a *MismatchError, data of another creation of
// the name with an *IdentityError; the next call tries again.
// A log that was closed is opened anew.
func (s *Store) OpenLog(ctx context.Context, space Space, key Key, o LogOptions) (*shardlog.Log, error) {
	if !space.known() {
		return nil, fmt.Errorf("storage: there is no space %q", space)
	}
	if err := CheckUID(o.UID); err != nil {
		return nil, err
	}
	for {
		sl, err := s.slot(slotKey{space, key}, o)
		if err != nil {
			return nil, err
		}
		if log, err := sl.wait(ctx); err != errPurging {
			return log, err
		}
	}
}

// slot finds the slot of a log, or makes one and starts to fill it.
func (s *Store) slot(id slotKey, o LogOptions) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	sl := s.slots[id]
	if sl == nil || sl.wasClosed() {
		var before *shardlog.Log
		if sl != nil {
			before = sl.log
		}
		sl = newSlot(id, o.UID)
		s.slots[id] = sl
		go s.fill(sl, before, o)
	}
	if o.UID != "" && sl.uid != "" && o.UID != sl.uid {
		return nil, &IdentityError{Path: shardDir(s.cfg.Root, id.space, id.key), Have: sl.uid, Want: o.UID}
	}
	if !o.Background && !sl.urgent {
		sl.urgent = true
		close(sl.wanted)
	}
	return sl, nil
}

func newSlot(id slotKey, uid string) *slot {
	return &slot{id: id, uid: uid, wanted: make(chan struct{}), done: make(chan struct{})}
}

// wasClosed reports whether the slot's log was closed by its user.
func (sl *slot) wasClosed() bool {
	select {
	case <-sl.done:
		return sl.log != nil && errors.Is(sl.log.Err(), shardlog.ErrClosed)
	default:
		return false
	}
}

func (sl *slot) wait(ctx context.Context) (*shardlog.Log, error) {
	select {
	case <-sl.done:
		return sl.log, sl.err
	default:
	}
	select {
	case <-sl.done:
		return sl.log, sl.err
	case <-ctx.Done():
		return nil, fmt.Errorf("open log %s: %w", sl.id.key, context.Cause(ctx))
	}
}

// fill opens the log of a slot when it is its turn. The log of before, if any,
// has the directory until its closing is over.
func (s *Store) fill(sl *slot, before *shardlog.Log, o LogOptions) {
	defer close(sl.done)
	select {
	case s.background <- struct{}{}:
		defer func() { <-s.background }()
	case <-sl.wanted:
	}
	s.opening <- struct{}{}
	defer func() { <-s.opening }()
	if before != nil {
		_ = before.Close() // whoever closed it heard how that went
	}
	sl.log, sl.err = s.open(sl, o)
	if sl.err != nil {
		s.logger.Error("log not opened", "shard", sl.id.key.String(), "kind", sl.id.space.Kind(), "error", sl.err)
		s.forget(sl)
	}
}

// forget makes the next call for the log open it again.
func (s *Store) forget(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[sl.id] == sl {
		delete(s.slots, sl.id)
	}
}

func (s *Store) open(sl *slot, o LogOptions) (*shardlog.Log, error) {
	id := sl.id
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	dir := shardDir(s.cfg.Root, id.space, id.key)
	if err := fs.MkdirDurable(s.fs, dir); err != nil {
		return nil, fmt.Errorf("open log %s: %w", id.key, err)
	}
	if err := claimDir(s.fs, dir, id); err != nil {
		return nil, err
	}
	if err := claimUID(s.fs, dir, id.key, o.UID); err != nil {
		return nil, err
	}
	options := s.logOptions(id, o)
	options.OnClosed = func() { s.forget(sl) }
	log, err := shardlog.Open(s.fs, dir, options)
	if err == nil {
		s.warnAhead(log)
	}
	return log, err
}

// warnAhead tells, once, that records are of a time that is still to come: the
// clock was ahead when they were written, or it is behind.
func (s *Store) warnAhead(log *shardlog.Log) {
	now, earliest := s.clock.Now(), time.UnixMicro(int64(min(log.Earliest(), math.MaxInt64)))
	if by := earliest.Sub(now); by > aheadBy {
		s.ahead.Do(func() {
			s.logger.Warn("a log has records of a time that is still to come by this machine's clock; its next records carry that time too, until the clock has come to it. Other logs may be the same",
				"log", log.Name(), "records_until", earliest.UTC().Format(time.RFC3339), "clock", now.UTC().Format(time.RFC3339))
		})
	}
}

// aheadBy is how far record times may be ahead for clocks that are merely not
// alike.
const aheadBy = time.Second

// shardDir is the directory of a shard.
func shardDir(root string, space Space, key Key) string {
	return filepath.Join(root, string(space), DirName(key))
}

// journalName is the shard's directory as the commit journal names it.
func journalName(id slotKey) string { return filepath.Join(string(id.space), DirName(id.key)) }

// projectionSegment is the most a segment of a log grows to whose compaction
// deletes segments while writers wait for the same disk: deleting a large file
// keeps some file systems from everything else for a tenth of a second.
const projectionSegment = 64 << 20

// logOptions completes the settings of every log by those of one.
func (s *Store) logOptions(id slotKey, o LogOptions) shardlog.Options {
	out := s.cfg.Log
	out.Name = id.key.String()
	out.Projection = id.space.projection()
	out.Retention = shardlog.Retention{}
	if out.Projection {
		out.SegmentBytes = min(cmp.Or(out.SegmentBytes, shardlog.DefaultSegmentBytes), projectionSegment)
	} else {
		out.Retention = o.Retention
	}
	out.Producers = o.Producers
	out.BaseOffset = o.BaseOffset
	out.Clock, out.Began = s.clock, s.began
	out.Gate = s.gate
	out.Journal, out.JournalName = s.journal, journalName(id)
	out.Descriptors = s.sealed[id.space]
	out.Metrics = s.metrics
	out.Logger = s.logger.With("shard", out.Name, "kind", id.space.Kind())
	out.AfterRound = o.AfterRound
	out.Admit = nil
	if id.space == Streams && s.cfg.SoftFreeBytes > 0 {
		out.Admit = func() error { return s.admit(out.Name) }
	}
	return out
}
