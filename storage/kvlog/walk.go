package kvlog

// walkSlots is how many slots a walk visits before it lets writers in.
const walkSlots = 1024

// walk visits every key that lives from its start to its end, once, and some of
// those that come and go meanwhile. It stops when visit answers false. visit is
// called with mu held for reading: it keeps no pointer and calls nothing of c.
func (c *core) walk(visit func(n uint32, name string, e *entry) bool) error {
	for from := uint32(0); ; from += walkSlots {
		c.mu.RLock()
		x := c.index
		for n := from; n < min(from+walkSlots, x.used); n++ {
			if s := x.at(n); s.key != "" && !visit(n, s.key, &s.entry) {
				c.mu.RUnlock()
				return nil
			}
		}
		end, broken := from+walkSlots >= x.used, c.broken
		c.mu.RUnlock()
		if end || broken != nil {
			return broken
		}
	}
}
