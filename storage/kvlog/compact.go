package kvlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/storage/shardlog"
)

const (
	// carryBatch is how many entries are read and copied at a time, and
	// carryBytes about how much of the log they may take.
	carryBatch = 64
	carryBytes = 4 << 20
	// carryRounds is how often a pass looks for entries that were being
	// written when it came by.
	carryRounds = 3
)

// A carried entry is one to copy behind the cut.
type carried struct {
	name   string
	entry  entry
	value  []byte
	loaded bool // value is the entry's
}

// pass is one compaction (storage 16.6). Every step leaves a log that replays
// to the same map: a copy restates what the log says already, and nothing is
// dropped before every copy is on the device. It reports whether it trimmed.
func (c *core) pass(ctx context.Context) (trimmed bool, err error) {
	cut, err := c.cutLog(ctx)
	if err != nil {
		return false, err
	}
	left := true
	for round := 0; left && round < carryRounds; round++ {
		if err := c.carryBelow(ctx, cut); err != nil {
			return false, fmt.Errorf("copy entries below %d: %w", cut, err)
		}
		if left, err = c.anyBelow(cut); err != nil {
			return false, err
		}
	}
	if left {
		return false, nil // of keys that are always being written: the next pass
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// In the modes that do not sync too: what follows deletes.
	if err := c.log.Flush(); err != nil {
		return false, fmt.Errorf("flush copies: %w", err)
	}
	before := c.log.Base()
	if err := c.log.TrimBefore(cut); err != nil {
		return false, fmt.Errorf("trim before %d: %w", cut, err)
	}
	trimmed = c.log.Base() > before
	if err := ctx.Err(); err != nil {
		return trimmed, err
	}
	if err := c.writeKeyIndex(ctx); err != nil {
		return trimmed, fmt.Errorf("write key index: %w", err)
	}
	return trimmed, nil
}

// cutLog seals the active segment and waits until all below has been applied.
func (c *core) cutLog(ctx context.Context) (cut uint64, err error) {
	if err := c.catchUp(); err != nil {
		return 0, err
	}
	if err := c.log.RollNow(); err != nil {
		return 0, fmt.Errorf("roll: %w", err)
	}
	segments := c.log.Segments()
	cut = segments[len(segments)-1].Base
	return cut, c.barrier(ctx)
}

// barrier waits until what is claimed now has committed and is applied.
func (c *core) barrier(ctx context.Context) error {
	b := make(barrier, 1)
	c.log.Barrier(b)
	select {
	case err := <-b:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type barrier chan error

func (b barrier) Committed(_ shardlog.Appended, err error) { b <- err }

// anyBelow reports whether an entry still needs what lies below cut.
func (c *core) anyBelow(cut uint64) (any bool, err error) {
	err = c.walk(func(_ uint32, _ string, e *entry) bool {
		any = e.offset < cut
		return !any
	})
	return any, err
}

// carryBelow copies the entries below cut to the tail, a batch at a time.
func (c *core) carryBelow(ctx context.Context, cut uint64) error {
	batch := make([]carried, 0, carryBatch)
	for from := uint32(0); ; {
		var end bool
		batch, from, end = c.nextBatch(batch, from, cut)
		if len(batch) > 0 {
			if err := c.carryAll(ctx, batch); err != nil {
				return err
			}
		}
		if end {
			return ctx.Err()
		}
	}
}

// nextBatch gathers entries below cut from slot from on. The values of batch
// are memory to use again.
func (c *core) nextBatch(batch []carried, from uint32, cut uint64) (_ []carried, next uint32, end bool) {
	batch = batch[:0]
	bytes := int64(0)
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	for n := from; n < x.used; n++ {
		if len(batch) == carryBatch || bytes >= carryBytes || n-from == walkSlots {
			return batch, n, false
		}
		s := x.at(n)
		if s.key == "" || s.entry.offset >= cut {
			continue
		}
		bytes += int64(s.entry.length)
		batch = batch[:len(batch)+1]
		b := &batch[len(batch)-1]
		*b = carried{name: s.key, entry: s.entry, value: b.value[:0]}
	}
	return batch, x.used, true
}

// carryAll copies one batch and waits until it is committed. Nothing is held
// while it reads, waits for the pacer, or waits for the log.
func (c *core) carryAll(ctx context.Context, batch []carried) error {
	if err := c.kind.load(ctx, batch); err != nil {
		return err
	}
	bytes := int64(0)
	for i := range batch {
		bytes += int64(batch[i].entry.length)
	}
	if c.opt.Pacer != nil {
		if err := c.opt.Pacer.Wait(ctx, 2*bytes); err != nil { // read once, written once
			return err
		}
	}
	landed := make(answered, len(batch))
	for i := range batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.submit(&op{key: []byte(batch[i].name), judge: judgeCarry, carries: &batch[i], background: true, done: landed})
	}
	var busy bool
	for range batch {
		select {
		case a := <-landed:
			if errors.Is(a.err, shardlog.ErrBusy) {
				busy = true
			} else if a.err != nil {
				return a.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if busy {
		// Writers fill the log's buffer. They come first: what did not fit
		// waits for the next round.
		return c.barrier(ctx)
	}
	return nil
}

func judgeCarry(o *op, v view) bool { return o.core.kind.carry(o, o.carries, v) }
