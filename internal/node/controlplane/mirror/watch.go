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
	var last uint64
	unread := false
	for ctx.Err() == nil {
		at, passed := m.view.cursor(f.feedName())
		if unread && at.since == last {
			pause(ctx, m.o.Interval)
		}
		unread, last = false, at.since
		if at.seeded {
			began := time.Now()
			verdict, err := f.peek(ctx, at.since, m.o.Wait)
			switch {
			case err != nil:
			case verdict != model.Nothing:
				unread = true
				m.Wake()
			case time.Since(began) >= m.o.Wait/2:
				continue // it was held
			}
		}
		// The next look follows a pass: the cursor has gone on by then.
		select {
		case <-passed:
		case <-ctx.Done():
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
