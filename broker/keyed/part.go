package keyed

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

// ReopenAfter is how long a log that could not be opened is left alone before
// a request may have it tried again.
const ReopenAfter = time.Second

// loadAtOnce bounds the logs of one [Shared] whose index is read at the same
// time.
const loadAtOnce = 4

// An Index is what gives the records of a log their meaning.
type Index interface {
	*kvlog.Map | *kvlog.Counters
	Close()
}

// Shared is what the parts of one store have in common.
type Shared struct {
	storage *storage.Store
	clock   *steady.Clock
	pacer   kvlog.Pacer   // of compaction, nil for no bound
	loading chan struct{} // a place to read an index from its log
}

// NewShared prepares for parts in a store, which is nil where there is none.
// Compaction of all parts together reads and writes at most rate bytes a
// second; below 0 means no bound.
func NewShared(s *storage.Store, clock *steady.Clock, rate int64) *Shared {
	out := &Shared{storage: s, clock: clock, loading: make(chan struct{}, loadAtOnce)}
	if rate > 0 {
		out.pacer = kvlog.NewPace(clock, rate)
	}
	return out
}

// An Owner is whose parts they are.
type Owner struct {
	Key storage.Key
	// UID is which creation of the name the logs are for, "" where nobody knows.
	UID string
	// After is closed when whoever had the logs before has let go of them.
	After <-chan struct{}
	// Removed answers what comes after End.
	Removed error
	// Unavailable is the error for a part that cannot be used.
	Unavailable func(r Reason, err error) error
	// Logger says whose parts they are.
	Logger *slog.Logger
}

// A Part is one of the logs of a shard with the index over it.
type Part[T Index] struct {
	// Round is told of after each round of the log's commits.
	Round Round

	shared *Shared
	owner  *Owner
	space  storage.Space
	build  func(kvlog.Log, kvlog.Options) (T, error)
	opened func(T)

	open     atomic.Pointer[Open[T]]
	openings sync.WaitGroup

	mu      sync.Mutex
	opening *opening // the last one, nil before the first
	ended   bool
}

// Open is a part that can be used.
type Open[T Index] struct {
	Log   *shardlog.Log
	Index T
}

// Init makes a part that opens nothing yet. build makes the index of a log.
// opened, if not nil, is called when the part can be used and before it is; it
// must not call the part.
func (p *Part[T]) Init(s *Shared, o *Owner, space storage.Space, build func(kvlog.Log, kvlog.Options) (T, error), opened func(T)) {
	p.shared, p.owner, p.space, p.build, p.opened = s, o, space, build, opened
}

// Opened is the part if it can be used, else nil. It starts nothing.
func (p *Part[T]) Opened() *Open[T] { return p.open.Load() }

// Failure is why the last opening failed; nil while one runs or where none did.
// It starts nothing.
func (p *Part[T]) Failure() error {
	p.mu.Lock()
	o := p.opening
	p.mu.Unlock()
	if o == nil {
		return nil
	}
	select {
	case <-o.done:
		return o.err
	default:
		return nil
	}
}

// Use is the part for one request. Without one it says why, and starts what
// makes the next request succeed. Errors: Owner.Removed, or what
// Owner.Unavailable makes.
func (p *Part[T]) Use() (*Open[T], error) {
	if open := p.open.Load(); open != nil {
		return open, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := p.begin()
	if err != nil {
		return nil, err
	}
	select {
	case <-o.done:
		if open := p.open.Load(); open != nil {
			return open, nil
		}
		return nil, o.err
	default:
		o.hurry()
		return nil, p.owner.Unavailable(Opening, nil)
	}
}

// Ready waits until the part can be used. Errors as [Part.Use], or the cause
// of ctx.
func (p *Part[T]) Ready(ctx context.Context) error {
	if p.open.Load() != nil {
		return nil
	}
	p.mu.Lock()
	o, err := p.begin()
	p.mu.Unlock()
	if err != nil {
		return err
	}
	o.hurry()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start opens the part in the background.
func (p *Part[T]) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.begin() // a part that cannot be opened says so when it is used
}

// End refuses new openings, and lets go of the part once one that runs is over.
func (p *Part[T]) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.opening != nil {
		p.opening.hurry()
	}
}

// Close waits for the opening that runs and closes what is open. It comes
// after End.
func (p *Part[T]) Close() error {
	p.openings.Wait()
	open := p.open.Load()
	if open == nil {
		return nil
	}
	open.Index.Close()
	err := open.Log.Close()
	p.Round.Over()
	return err
}
