package queue

import "context"

// exclusively runs f while nothing else happens to the group: requests wait, and
// what they wrote has ended. f runs without the group's lock, and on although
// ctx has ended, when its outcome is not known.
func (g *group) exclusively(ctx context.Context, f func() error) error {
	if err := g.enter(ctx); err != nil {
		return err
	}
	over := make(chan struct{})
	g.exclusive = over
	g.users.Add(1)
	g.leave(teller{})
	done := make(wait, 1)
	go func() {
		defer g.release()
		g.quiesce()
		err := f()
		g.mu.Lock()
		g.exclusive = nil
		close(over)
		g.lapse()
		_, tail := g.shard.src.Bounds()
		g.wake(tail)
		g.leave(teller{})
		done <- err
	}()
	return done.wait(ctx)
}

// quiesce waits until no write is under way.
func (g *group) quiesce() {
	for {
		g.mu.Lock()
		settled := g.outbox.settled()
		g.mu.Unlock()
		if settled == nil {
			return
		}
		<-settled
	}
}

// commit makes writes, at most batch of them at a time, and waits for their end.
// It is for who has the group for itself.
func (g *group) commit(writes []*write) error {
	for len(writes) > 0 {
		n := min(len(writes), batch)
		ends := make(chan error, n)
		g.mu.Lock()
		for _, w := range writes[:n] {
			ended := w.ended
			w.ended = func(err error) {
				if err == nil && ended != nil {
					ended(nil)
				}
				ends <- err
			}
			g.push(w)
		}
		g.leave(teller{})
		writes = writes[n:]
		var failed error
		for range n {
			if err := <-ends; err != nil {
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// batch bounds the writes of one operation that are under way, so that they do
// not fill the log's queue for everybody.
const batch = 512
