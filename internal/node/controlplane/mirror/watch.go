package mirror

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// watch wakes the passes when a feed has something new, by long-poll. Where the
// other side does not wait, or a pass cannot read what there is, it looks no
// more often than passes are made without it.
func (m *Mirror) watch(ctx context.Context, f follower) {
	for ctx.Err() == nil {
		at, pass := m.view.cursor(f.feedName())
		if at.seeded {
			began := time.Now()
			verdict, err := f.peek(ctx, at.since, m.o.Wait)
			switch {
			case err != nil:
			case verdict != model.Nothing:
				m.catchUp(ctx, f, at.since)
				continue
			case time.Since(began) >= m.o.Wait/2:
				continue // it was held
			}
		}
		// The next look follows a pass: the cursor may have gone on by then.
		select {
		case <-pass.ended:
		case <-ctx.Done():
		}
	}
}

// catchUp has a pass read what a look has found. One that was under way may have
// read the feed before: the one after it counts.
func (m *Mirror) catchUp(ctx context.Context, f follower, since uint64) {
	_, now := m.view.cursor(f.feedName())
	m.Wake()
	for {
		at, pass := m.view.cursor(f.feedName())
		switch {
		case at.since != since:
			return
		case pass.number > now.begun:
			pause(ctx, m.o.Interval)
			return
		}
		select {
		case <-pass.ended:
		case <-ctx.Done():
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
