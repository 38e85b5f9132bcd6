package cli

import (
	"math"
	"runtime"
	"runtime/debug"

	"github.com/felixlog/felix/internal/config"
)

// tuneProcess sets what a configuration says of the Go runtime. It is for the
// commands whose whole process is one broker.
func tuneProcess(p config.Process) {
	debug.SetGCPercent(p.GCPercent)
	limit := p.MemoryLimit
	if limit == 0 {
		limit = math.MaxInt64
	}
	debug.SetMemoryLimit(limit)
	if p.WorkerThreads > 0 {
		runtime.GOMAXPROCS(p.WorkerThreads)
	}
}
