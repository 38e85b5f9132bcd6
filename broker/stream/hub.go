package stream

import "sync/atomic"

// A Hub holds what the streams of one broker share: limits, buffers, ids and
// counters.
type Hub struct {
	cfg      Config
	clock    Clock
	headroom int
	pool     *pool
	counters counters

	shardIDs, subscriptionIDs atomic.Uint64
	// floor is above every offset a removed shard gave out. A stream that is
	// removed and registered again within the clock's resolution of its own
	// rate must not use an offset twice.
	floor atomic.Uint64

	opener opener
}

// NewHub returns the common ground of one broker's streams.
func NewHub(cfg Config, clock Clock) *Hub {
	cfg = cfg.withDefaults()
	h := &Hub{cfg: cfg, clock: clock, headroom: cfg.Encoder.Headroom(), pool: newPool(cfg.PoolBytes)}
	h.opener.init()
	return h
}

// Close waits until no log is open, being opened or being closed. All streams
// have ended and none is added any more.
func (h *Hub) Close() { h.opener.finish() }

// base is the first offset of a new shard.
func (h *Hub) base(name Name, shard uint32) uint64 {
	if h.cfg.OffsetBase != nil {
		return h.cfg.OffsetBase(name, shard)
	}
	return max(uint64(max(h.clock.Now().UnixMicro(), 0)), h.floor.Load())
}

// raiseFloor records that offsets below tail have been given out.
func (h *Hub) raiseFloor(tail uint64) {
	for {
		floor := h.floor.Load()
		if floor >= tail || h.floor.CompareAndSwap(floor, tail) {
			return
		}
	}
}
