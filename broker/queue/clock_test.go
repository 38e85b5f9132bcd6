package queue

import (
	"sync"
	"time"
)

// handClock stands where it is put. What is due runs on its own goroutine.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]bool
	fired  int
}

type handTimer struct {
	at time.Time
	f  func()
}

func newHandClock() *handClock {
	return &handClock{now: time.UnixMilli(1_000_000), timers: map[*handTimer]bool{}}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{at: c.now.Add(d), f: f}
	if d <= 0 {
		c.fired++
		go f()
		return func() bool { return false }
	}
	c.timers[t] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		pending := c.timers[t]
		delete(c.timers, t)
		return pending
	}
}

// advance moves the time and starts what is due.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for t := range c.timers {
		if !t.at.After(c.now) {
			delete(c.timers, t)
			c.fired++
			go t.f()
		}
	}
}

// pending is how many timers are set, and how many have fired.
func (c *handClock) pending() (set, fired int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers), c.fired
}
