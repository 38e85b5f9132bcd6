package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// resetLooks is how often in a row a feed must be behind its reader before that
// counts as a reset: an instance that lags behind the others looks the same, and
// catches up.
const resetLooks = 5

// A feed follows one kind of record.
type feed[T any, C model.Sequenced] struct {
	name     string
	snapshot func(ctx context.Context) (model.Snapshot[T], error)
	changes  func(ctx context.Context, since uint64, wait time.Duration) (model.Page[C], error)
	// replace takes a snapshot into the picture; reset says that the feed began
	// anew, so that numbers from before mean nothing.
	replace func(s model.Snapshot[T], reset bool)
	// apply takes one change into the picture; an error says that the change is
	// not well-formed.
	apply func(c C) error

	cursor cursor
}

// A cursor is how far a feed was read.
type cursor struct {
	seeded bool
	again  bool // it was seeded before
	since  uint64
	behind int // looks in a row at which the feed was behind since
}

// follower is a feed of any kind.
type follower interface {
	feedName() string
	read(ctx context.Context) (changed bool, err error)
	position() *cursor
	stale()
	peek(ctx context.Context, since uint64, wait time.Duration) (model.Verdict, error)
}

func (f *feed[T, C]) feedName() string  { return f.name }
func (f *feed[T, C]) position() *cursor { return &f.cursor }

// stale has the next read take a new snapshot.
func (f *feed[T, C]) stale() { f.cursor.seeded = false }

// read takes everything new into the picture: the pages there are, or a
// snapshot. What was taken before an error stays taken.
func (f *feed[T, C]) read(ctx context.Context) (changed bool, err error) {
	if !f.cursor.seeded {
		return true, f.seed(ctx, !f.cursor.again)
	}
	for {
		page, err := f.changes(ctx, f.cursor.since, 0)
		if err != nil {
			return changed, fmt.Errorf("%s changes: %w", f.name, err)
		}
		verdict, next, more := model.Judge(page, f.cursor.since)
		if page.NextSeq < f.cursor.since {
			if f.cursor.behind++; f.cursor.behind < resetLooks {
				return changed, nil
			}
			return true, f.seed(ctx, true)
		}
		f.cursor.behind = 0
		switch verdict {
		case model.Nothing:
			return changed, nil
		case model.Resnapshot:
			return true, f.seed(ctx, false)
		}
		if err := f.take(page.Items); err != nil {
			return true, f.seed(ctx, false)
		}
		f.cursor.since = next
		changed = true
		if !more {
			return changed, nil
		}
	}
}

// take applies the changes of a page that are new. One that is missing or does
// not make sense is an error: the picture is then made anew.
func (f *feed[T, C]) take(items []C) error {
	want := f.cursor.since
	for _, c := range items {
		switch seq := c.Sequence(); {
		case seq < want:
			continue
		case seq > want:
			return fmt.Errorf("change %d follows on %d", seq, want)
		}
		if err := f.apply(c); err != nil {
			return err
		}
		want++
	}
	return nil
}

func (f *feed[T, C]) seed(ctx context.Context, reset bool) error {
	s, err := f.snapshot(ctx)
	if err != nil {
		return fmt.Errorf("%s snapshot: %w", f.name, err)
	}
	f.replace(s, reset)
	f.cursor = cursor{seeded: true, again: true, since: s.NextSeq}
	return nil
}

// peek asks, for at most wait, whether there is something to read from since
// on. It changes nothing, and may run beside read.
func (f *feed[T, C]) peek(ctx context.Context, since uint64, wait time.Duration) (model.Verdict, error) {
	page, err := f.changes(ctx, since, wait)
	if err != nil {
		return model.Nothing, fmt.Errorf("%s changes: %w", f.name, err)
	}
	verdict, _, _ := model.Judge(page, since)
	return verdict, nil
}
