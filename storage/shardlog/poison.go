package shardlog

import (
	"errors"

	"github.com/felixlog/felix/storage/fs"
)

// poison latches the log: nothing is written any more, the durable bound never
// moves again, and readers stop there (storage 8.2). The first error wins; it is
// returned.
func (l *Log) poison(op string, cause error) *SyncFailedError {
	l.metrics.SyncFailures.Add(1)
	l.mu.Lock()
	first := l.failure == nil
	if first {
		l.failure = &SyncFailedError{Log: l.opts.Name, Op: op, Err: cause}
		l.tail.Store(l.durable.Load())
		l.signalRoom()
	}
	failure := l.failure
	l.mu.Unlock()
	if first {
		l.opts.Logger.Error("log takes no more writes", "log", l.opts.Name, "op", op, "error", cause)
	}
	return failure
}

// Err is why the log takes no writes: *ClosedError, *SyncFailedError, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failure != nil:
		return l.failure
	case l.closed:
		return &ClosedError{Log: l.opts.Name}
	}
	return nil
}

// refused is why the log cannot be changed: closed or poisoned.
func (l *Log) refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &ClosedError{Log: l.opts.Name}
	}
	if l.failure != nil {
		return l.failure
	}
	return nil
}

// fileError turns a failure of the file system into the log's error. A failed
// sync poisons the log.
func (l *Log) fileError(op string, err error) error {
	if _, poisoned := errors.AsType[*SyncFailedError](err); poisoned {
		return err
	}
	if sync, ok := errors.AsType[*syncError](err); ok {
		return l.poison(op, sync.err)
	}
	if fs.IsFull(err) {
		l.metrics.Full.Add(1)
		return &FullError{Log: l.opts.Name, Op: op, Err: err}
	}
	return &IOError{Log: l.opts.Name, Op: op, Err: err}
}

// signalRoom wakes those who wait for room. The caller holds mu.
func (l *Log) signalRoom() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}
