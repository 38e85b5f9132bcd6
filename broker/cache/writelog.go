package cache

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage/kvlog"
)

// phase tells on whose goroutine a completion ends.
type phase = uint32

const (
	// calling: the caller is still in the call.
	calling phase = iota
	// returned: it has returned, the committer completes.
	returned
	// answered: the outcome came first, the caller completes.
	answered
)

// A logWrite carries the outcome of a write from kvlog to its done.
type logWrite struct {
	shard  *logShard
	op     Op
	done   WriteDone
	phase  atomic.Uint32
	result kvlog.Result
	err    error
}

var logWrites = sync.Pool{New: func() any { return new(logWrite) }}

// writeLog is Write on the log.
func (c *Cache) writeLog(shard uint32, w Write, done WriteDone) {
	sh, open, write, err := c.prepare(shard, w)
	if err != nil {
		done.Written(Result{}, err)
		return
	}
	lw := logWrites.Get().(*logWrite)
	lw.shard, lw.op, lw.done = sh, w.Op, done
	lw.phase.Store(calling)
	open.Index.Write(write, lw)
	if !lw.phase.CompareAndSwap(calling, returned) {
		lw.complete()
	}
}

func (c *Cache) prepare(shard uint32, w Write) (*logShard, *keyed.Open[*kvlog.Map], kvlog.Write, error) {
	write := kvlog.Write{Op: kvlog.Delete, Key: w.Key, Condition: w.Condition.onLog()}
	if w.Op == Put {
		deadline, err := w.TTL.deadline(c.store.clock)
		if err != nil {
			return nil, nil, write, err
		}
		if size := int64(len(w.Key) + len(w.Value)); size > kvlog.MaxEntryBytes {
			return nil, nil, write, &TooLargeError{Size: size, Limit: kvlog.MaxEntryBytes}
		}
		write.Op, write.Value, write.ExpiresAtMillis = kvlog.Put, w.Value, deadline
	}
	sh, open, err := c.values(shard)
	return sh, open, write, err
}

// onLog is the condition as kvlog has it.
func (c Condition) onLog() kvlog.Condition {
	switch c.kind {
	case absent:
		return kvlog.Absent()
	case atVersion:
		return kvlog.AtVersion(c.version)
	}
	return kvlog.Always()
}

// Written hears from kvlog, on the committer's goroutine or the caller's. Only
// what the committer completes is flushed after the round.
func (w *logWrite) Written(r kvlog.Result, err error) {
	w.result, w.err = r, err
	if w.phase.CompareAndSwap(calling, answered) {
		return
	}
	round, done := &w.shard.values.Round, w.done
	w.complete()
	round.Add(done)
}

// complete tells done, and gives w back.
func (w *logWrite) complete() {
	shard, op, done, r, err := w.shard, w.op, w.done, w.result, w.err
	w.shard, w.done, w.result, w.err = nil, nil, kvlog.Result{}, nil
	logWrites.Put(w)
	if err != nil {
		done.Written(Result{}, shard.outcome(err))
		return
	}
	result := Result{Applied: r.Applied, Version: r.Version, HasVersion: r.HasVersion}
	if r.HasRemoved {
		result.Removed, result.HasRemoved = itemOf(r.Removed), true
	}
	if r.Applied {
		shard.cache.store.onLog.applied(op)
	}
	done.Written(result, nil)
}

// A logAdd carries the outcome of an addition from kvlog to its done.
type logAdd struct {
	shard *logShard
	done  CounterDone
	phase atomic.Uint32
	sum   int64
	err   error
}

var logAdds = sync.Pool{New: func() any { return new(logAdd) }}

// Added hears from kvlog as [logWrite.Written] does.
func (a *logAdd) Added(sum int64, err error) {
	a.sum, a.err = sum, err
	if a.phase.CompareAndSwap(calling, answered) {
		return
	}
	round, done := &a.shard.counters.Round, a.done
	a.complete()
	round.Add(done)
}

func (a *logAdd) complete() {
	shard, done, sum, err := a.shard, a.done, a.sum, a.err
	a.shard, a.done, a.sum, a.err = nil, nil, 0, nil
	logAdds.Put(a)
	var overflow *kvlog.OverflowError
	if errors.As(err, &overflow) {
		err = &CounterOverflowError{Sum: overflow.Sum, Delta: overflow.Delta}
	}
	if err != nil {
		done.Added(0, shard.outcome(err))
		return
	}
	done.Added(sum, nil)
}
