package kvlog

import (
	"github.com/felixlog/felix/storage/shardlog"
)

// Log is what a projection needs of its log; *shardlog.Log is one.
type Log interface {
	AppendAt(expected uint64, e *shardlog.Entry, done shardlog.Completion) (shardlog.Appended, error)
	Barrier(done shardlog.Completion)
	Base() uint64
	Claimed() uint64
	Tail() uint64
	Bytes() int64
	Segments() []shardlog.SegmentInfo
	Read(from uint64, maxBytes, maxRecords int) (*shardlog.Page, error)
	ReadAll(from uint64, maxBytes, maxRecords int) (*shardlog.Page, error)
	ReadAt(at shardlog.Location) (*shardlog.Page, error)
	RollNow() error
	TrimBefore(offset uint64) error
	Flush() error
}

var _ Log = (*shardlog.Log)(nil)
