package udp

import "sync/atomic"

// counts are [Counters] as the reading goroutine keeps them.
type counts struct {
	reads, packets, truncated, pollHits, pollMisses atomic.Uint64
}

func (c *counts) read() Counters {
	return Counters{
		Reads:      c.reads.Load(),
		Packets:    c.packets.Load(),
		Truncated:  c.truncated.Load(),
		PollHits:   c.pollHits.Load(),
		PollMisses: c.pollMisses.Load(),
	}
}
