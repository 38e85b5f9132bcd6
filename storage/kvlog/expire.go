package kvlog

import "sync/atomic"

// DefaultExpireLimit bounds the removals of one expiry pass (storage 16.4).
const DefaultExpireLimit = 1024

// Expire stages the removal of entries whose deadline is at or before
// nowMillis, the longest lapsed first, at most limit (0 for
// [DefaultExpireLimit]), and returns how many. A put that is staged already
// wins. The removals apply, and the Observer hears Expired, as they commit;
// one that fails is tried again by a later pass. Error: the first one known when
// Expire returns.
func (m *Map) Expire(nowMillis int64, limit int) (int, error) {
	c := m.core
	if limit <= 0 {
		limit = DefaultExpireLimit
	}
	if err := c.catchUp(); err != nil {
		return 0, err
	}
	pass := &expiryPass{core: c}
	staged := 0
	names, err := c.takeLapsed(nowMillis, limit)
	for _, name := range names {
		o := &op{
			key: []byte(name), judge: judgeExpire, asOf: nowMillis, background: true,
			done: &expiry{pass, name},
		}
		c.submit(o)
		if o.judged {
			staged++
		}
	}
	if failed := pass.failed.Load(); failed != nil {
		err = *failed
	}
	return staged, err
}

// NextExpiry is the earliest deadline of an entry in Unix milliseconds, lapsed
// ones included; false when none has one.
func (m *Map) NextExpiry() (int64, bool) {
	m.core.mu.Lock()
	defer m.core.mu.Unlock()
	d, ok := m.core.index.nextDeadline()
	return d.at, ok
}

func (c *core) takeLapsed(nowMillis int64, limit int) (names []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	for len(names) < limit {
		d, ok := c.index.popLapsed(nowMillis)
		if !ok {
			break
		}
		names = append(names, c.index.at(d.slot).key)
	}
	return names, nil
}

// judgeExpire looks again, with what is staged: a timer set for an old value
// never removes the new one.
func judgeExpire(o *op, v view) bool {
	if !v.present || !v.entry.lapsed(o.asOf) {
		return false
	}
	o.expire()
	o.result.Applied = true
	return true
}

// An expiryPass keeps the first error of a pass.
type expiryPass struct {
	core   *core
	failed atomic.Pointer[error]
}

type expiry struct {
	pass *expiryPass
	name string
}

func (e *expiry) Written(r Result, err error) {
	if err == nil && r.Applied {
		return
	}
	if err != nil {
		e.pass.failed.CompareAndSwap(nil, &err)
	}
	c := e.pass.core
	c.mu.Lock()
	c.index.restoreDeadline(e.name)
	c.mu.Unlock()
}
