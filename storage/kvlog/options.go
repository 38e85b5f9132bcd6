package kvlog

import (
	"context"
	"log/slog"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

// Defaults of compaction (storage 16.6, 17): a pass starts when the log is
// larger than the floor and than factor times its live bytes.
const (
	DefaultCompactFloor        = 1 << 20
	DefaultCounterCompactFloor = 64 << 10
	DefaultCompactFactor       = 4
)

// Options are the settings of one projection. Clock, FS and Dir are required;
// zero elsewhere means the default.
type Options struct {
	// Dir is the log's directory in FS; the key index lies there.
	Dir   string
	FS    fs.FS
	Clock shardlog.Clock
	// CompactFloor is in bytes of log, negative for no compaction but by
	// Compact.
	CompactFloor  int64
	CompactFactor int64
	// Pacer slows compaction's reads and writes; nil is no limit.
	Pacer Pacer
	// Observer hears of changes; nil for none. Counters have none.
	Observer Observer
	// Logger is nil for silence.
	Logger *slog.Logger
}

// Pacer makes compaction wait for its share of the device.
type Pacer interface {
	// Wait returns when bytes may be read or written, or with the context's
	// error.
	Wait(ctx context.Context, bytes int64) error
}
