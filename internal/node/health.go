package node

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/felixlog/felix/broker/stream"
)

// A health says why a node that serves is not ready for writes: a log is still
// being opened at the start, one was refused or has failed, or the disk is
// full. Reads go on, and a restart would not help, so /live knows nothing of
// it.
type health struct {
	n *Node

	mu      sync.Mutex
	opened  bool      // every log there was at the start is open or refused
	refused uint64    // writes refused for want of space, as of the last look
	full    time.Time // when the last of them was seen
}

// fullFor is how long after a write found no room the node says so, where
// nothing else tells that there is none.
const fullFor = 2 * time.Second

// namedShards is how many failed shards a reason names.
const namedShards = 3

// reason is empty while all is well.
func (h *health) reason() string {
	if h.n.store == nil {
		return ""
	}
	var reasons []string
	if opening := h.opening(); opening != "" {
		reasons = append(reasons, opening)
	}
	if h.outOfSpace() {
		reasons = append(reasons, "storage full: writes are refused until there is room")
	}
	if err := h.n.store.Healthy(); err != nil {
		reasons = append(reasons, err.Error())
	}
	if failed := h.n.refusedShards(); failed != "" {
		reasons = append(reasons, failed)
	}
	return strings.ReplaceAll(strings.Join(reasons, "; "), "\n", "; ")
}

// opening tells of logs that are being opened, until all of the start are. One
// that is opened later, for a new stream, does not make the node unready.
func (h *health) opening() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened {
		return ""
	}
	if st := h.n.store.Stats(); st.OpeningLogs > 0 {
		return fmt.Sprintf("opening %d of %d logs", st.OpeningLogs, st.OpeningLogs+st.OpenLogs)
	}
	if o := h.n.core.Opening(); o.Opening > 0 {
		return fmt.Sprintf("opening %d of %d shards", o.Opening, o.Shards)
	}
	h.opened = true
	return ""
}

// outOfSpace says whether writes were refused for want of space a moment ago.
// The store itself tells of a disk that is nearly full.
func (h *health) outOfSpace() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.n.clock.Now()
	if refused := h.n.store.Metrics().Full.Load(); refused != h.refused {
		h.refused, h.full = refused, now
	}
	return !h.full.IsZero() && now.Sub(h.full) < fullFor
}

// refusedShards names shards whose log was refused when it was opened.
func (n *Node) refusedShards() string {
	var named []string
	count := 0
	note := func(err error) {
		if count++; len(named) < namedShards {
			named = append(named, err.Error())
		}
	}
	for _, s := range n.core.Streams() {
		if !s.Options().Durable {
			continue
		}
		for i := range s.Shards() {
			if st := s.Shard(i).Status(); st.State == stream.Refused {
				note(st.Err)
			}
		}
	}
	if count > len(named) {
		named = append(named, fmt.Sprintf("%d more shards are refused", count-len(named)))
	}
	return strings.Join(named, "; ")
}
