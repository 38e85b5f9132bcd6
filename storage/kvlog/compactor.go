package kvlog

import (
	"context"
	"errors"
	"sync"

	"github.com/felixlog/felix/storage/shardlog"
)

// A compactor runs passes, one at a time, and stops them.
type compactor struct {
	slot   chan struct{} // holds a token while no pass runs
	closed chan struct{} // closed when the projection closes

	mu       sync.Mutex
	cancel   context.CancelFunc // of the pass that runs
	started  bool               // by a write, and not yet over
	resumeAt int64              // bytes of log below which a write starts none
	passes   sync.WaitGroup     // those started by writes
}

func (k *compactor) init() {
	k.closed = make(chan struct{})
	k.slot = make(chan struct{}, 1)
	k.slot <- struct{}{}
}

// begin waits for the pass that runs. The context of the next one ends with
// ctx, when the projection closes, and when it is halted.
func (k *compactor) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	select {
	case <-k.slot:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-k.closed:
		return nil, nil, ErrClosed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isClosed() {
		k.release()
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	k.cancel = cancel
	return ctx, func() {
		cancel()
		k.release()
	}, nil
}

// halt stops the pass that runs at its next step, and keeps others from
// starting until the function it returns is called.
func (k *compactor) halt() (resume func(), err error) {
	k.stop()
	select {
	case <-k.slot:
	case <-k.closed:
		return nil, ErrClosed
	}
	if k.isClosed() {
		k.release()
		return nil, ErrClosed
	}
	return k.release, nil
}

func (k *compactor) release() { k.slot <- struct{}{} }

func (k *compactor) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		k.cancel()
	}
}

// close stops the pass that runs at its next step and waits for it.
func (k *compactor) close() {
	k.mu.Lock()
	if !k.isClosed() {
		close(k.closed)
	}
	k.mu.Unlock()
	k.stop()
	k.passes.Wait()
	<-k.slot
	k.release()
}

func (k *compactor) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// start claims the right to run a pass for a write that found bytes of log.
func (k *compactor) start(bytes int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.started || k.isClosed() || bytes < k.resumeAt {
		return false
	}
	k.started = true
	k.passes.Add(1)
	return true
}

// ended gives it back, unless again asks for another pass at once: writers went
// on meanwhile. After a pass that dropped nothing the log has to grow to
// resumeAt before the next.
func (k *compactor) ended(resumeAt int64, again func() bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isClosed() && again() {
		return false
	}
	k.started, k.resumeAt = false, resumeAt
	k.passes.Done()
	return true
}

// compact runs one pass on the caller's goroutine.
func (c *core) compact(ctx context.Context) error {
	_, err := c.runPass(ctx)
	return err
}

func (c *core) runPass(ctx context.Context) (trimmed bool, err error) {
	ctx, end, err := c.compactor.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	trimmed, err = c.pass(ctx)
	if err != nil && c.compactor.isClosed() {
		err = ErrClosed
	}
	return trimmed, err
}

// garbage reports that the log is mostly that, and how large it is.
func (c *core) garbage() (bytes int64, much bool) {
	bytes = c.log.Bytes()
	floor := c.opt.CompactFloor
	return bytes, floor >= 0 && bytes > floor && bytes/c.opt.CompactFactor > c.liveBytes()
}

// maybeCompact starts a pass if there is much garbage. It never waits.
func (c *core) maybeCompact() {
	if bytes, much := c.garbage(); much && c.compactor.start(bytes) {
		go c.passForWrites()
	}
}

func (c *core) passForWrites() {
	for {
		trimmed, err := c.runPass(context.Background())
		switch {
		case err == nil, errors.Is(err, ErrClosed), errors.Is(err, shardlog.ErrClosed), errors.Is(err, context.Canceled):
		default:
			c.opt.Logger.Warn("compaction pass failed, it is tried again when the log has grown", "dir", c.opt.Dir, "error", err)
		}
		resumeAt := int64(0)
		if !trimmed {
			resumeAt = c.log.Bytes() + c.opt.CompactFloor/4
		}
		again := func() bool {
			_, much := c.garbage()
			return err == nil && trimmed && much
		}
		if c.compactor.ended(resumeAt, again) {
			return
		}
	}
}
