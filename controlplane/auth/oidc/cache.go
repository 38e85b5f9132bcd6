package oidc

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxCached is how many addresses are remembered. A new one takes the place of
// the longest unused one; where all are in use, it is refused.
const maxCached = 1024

var errTooMany = errors.New("too many providers are in use at once")

// A cache holds what was parsed from addresses. An address is fetched at most
// once per cool-down, whatever came of it, and those that wait share the fetch.
type cache[T any] struct {
	fetch func(address string) ([]byte, error)
	parse func(body []byte) (T, error)
	now   func() time.Time

	mu      sync.Mutex
	entries map[string]*entry[T]
}

type entry[T any] struct {
	value   T
	valid   bool      // value is there
	fetched time.Time // when value was asked for
	tried   time.Time // when anything was last asked for
	used    time.Time
	err     error         // of the last fetch
	flight  chan struct{} // closed when the fetch under way ends; nil if there is none
}

// get returns what is at the address. With newer set it fetches again if the
// cool-down allows, for somebody who misses something in what there is.
//
// A value that cannot be renewed serves for a second lifetime: a provider that
// is away for a moment should not stop everybody at once.
func (c *cache[T]) get(ctx context.Context, address string, newer bool) (T, error) {
	var none T
	c.mu.Lock()
	now := c.now()
	e, err := c.entry(address, now)
	if err != nil {
		c.mu.Unlock()
		return none, err
	}
	e.used = now
	fresh := e.valid && now.Sub(e.fetched) < CacheTTL
	flight := e.flight
	switch {
	case fresh && !newer:
		defer c.mu.Unlock()
		return e.value, nil
	case flight == nil && !e.tried.IsZero() && now.Sub(e.tried) < CoolDown:
		defer c.mu.Unlock()
		return e.result(now)
	case flight == nil:
		flight = make(chan struct{})
		e.flight, e.tried = flight, now
		go c.run(address, e)
	}
	c.mu.Unlock()
	select {
	case <-flight:
	case <-ctx.Done():
		return none, errors.New("the request ended before the provider answered")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.result(c.now())
}

// run fetches for all who wait. It has its own time, not that of the one who
// came first.
func (c *cache[T]) run(address string, e *entry[T]) {
	body, err := c.fetch(address)
	var value T
	if err == nil {
		value, err = c.parse(body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.err = err
	if err == nil {
		e.value, e.valid, e.fetched = value, true, e.tried
	}
	close(e.flight)
	e.flight = nil
}

func (e *entry[T]) result(now time.Time) (T, error) {
	if e.valid && now.Sub(e.fetched) < 2*CacheTTL {
		return e.value, nil
	}
	var none T
	return none, e.err
}

// entry finds or makes the entry of an address. One that is being fetched or
// is in its cool-down is not given up: that would let it be fetched again.
func (c *cache[T]) entry(address string, now time.Time) (*entry[T], error) {
	if e := c.entries[address]; e != nil {
		return e, nil
	}
	if len(c.entries) >= maxCached {
		var oldest string
		for other, e := range c.entries {
			if e.flight == nil && now.Sub(e.tried) >= CoolDown && (oldest == "" || e.used.Before(c.entries[oldest].used)) {
				oldest = other
			}
		}
		if oldest == "" {
			return nil, errTooMany
		}
		delete(c.entries, oldest)
	}
	e := new(entry[T])
	c.entries[address] = e
	return e, nil
}
