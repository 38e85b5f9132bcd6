package model

// Op is what a change did.
type Op string

// The operations of the feeds (control plane 5.1).
const (
	Created      Op = "created"
	Updated      Op = "updated"
	Deleted      Op = "deleted"
	Assigned     Op = "assigned"
	Unassigned   Op = "unassigned"
	Registered   Op = "registered"
	Deregistered Op = "deregistered"
)

// A Snapshot is all records of a kind at one instant. NextSeq is the first
// sequence that is not contained in it.
type Snapshot[T any] struct {
	Items   []T    `json:"items"`
	NextSeq uint64 `json:"next_seq"`
	// Tombstones are the newest deletions of streams or caches, of the same
	// instant; other kinds have none.
	Tombstones []Tombstone `json:"tombstones,omitempty"`
}

// A Page is a run of changes, oldest first. NextSeq is the head of the log,
// not the end of the page (control plane 5.2).
type Page[T any] struct {
	Items   []T    `json:"items"`
	NextSeq uint64 `json:"next_seq"`
}

// The changes of the six feeds. The record is nil on deletion.
type (
	// A TenantChange is created or deleted.
	TenantChange struct {
		Seq      uint64  `json:"seq"`
		Op       Op      `json:"op"`
		TenantID string  `json:"tenant_id"`
		Tenant   *Tenant `json:"tenant"`
	}
	// A NamespaceChange is created or deleted.
	NamespaceChange struct {
		Seq       uint64       `json:"seq"`
		Op        Op           `json:"op"`
		Key       NamespaceKey `json:"key"`
		Namespace *Namespace   `json:"namespace"`
	}
	// A StreamChange is created, updated or deleted; deleted carries a
	// tombstone.
	StreamChange struct {
		Seq       uint64     `json:"seq"`
		Op        Op         `json:"op"`
		Key       StreamKey  `json:"key"`
		Stream    *Stream    `json:"stream"`
		Tombstone *Tombstone `json:"tombstone,omitempty"`
	}
	// A CacheChange is created, updated or deleted; deleted carries a
	// tombstone.
	CacheChange struct {
		Seq       uint64     `json:"seq"`
		Op        Op         `json:"op"`
		Key       CacheKey   `json:"key"`
		Cache     *Cache     `json:"cache"`
		Tombstone *Tombstone `json:"tombstone,omitempty"`
	}
	// An AssignmentChange is assigned, updated or unassigned.
	AssignmentChange struct {
		Seq        uint64      `json:"seq"`
		Op         Op          `json:"op"`
		Key        ShardKey    `json:"key"`
		Assignment *Assignment `json:"assignment"`
	}
	// A NodeChange is registered, updated or deregistered. Heartbeats are no
	// changes.
	NodeChange struct {
		Seq    uint64 `json:"seq"`
		Op     Op     `json:"op"`
		NodeID string `json:"node_id"`
		Node   *Node  `json:"node"`
	}
)

// Sequence of a change in its feed.
func (c TenantChange) Sequence() uint64     { return c.Seq }
func (c NamespaceChange) Sequence() uint64  { return c.Seq }
func (c StreamChange) Sequence() uint64     { return c.Seq }
func (c CacheChange) Sequence() uint64      { return c.Seq }
func (c AssignmentChange) Sequence() uint64 { return c.Seq }
func (c NodeChange) Sequence() uint64       { return c.Seq }

// A Sequenced is a change of any feed.
type Sequenced interface{ Sequence() uint64 }

// Verdict is what a page means to a reader that asked for the changes since a
// sequence (control plane 5.3).
type Verdict uint8

// The verdicts.
const (
	Nothing    Verdict = iota // nothing new: wait
	Apply                     // apply the items in order
	Resnapshot                // changes are missing: take a new snapshot
)

// Judge says what to do with a page, and where to go on: the sequence after the
// last item, or since. It never jumps to the head of the log, which may be
// pages away. more says that the next page is there already.
func Judge[T Sequenced](p Page[T], since uint64) (v Verdict, next uint64, more bool) {
	if len(p.Items) == 0 {
		if p.NextSeq == since {
			return Nothing, since, false
		}
		return Resnapshot, since, false
	}
	if p.NextSeq < since || p.Items[0].Sequence() > since {
		return Resnapshot, since, false
	}
	next = p.Items[len(p.Items)-1].Sequence() + 1
	return Apply, next, next < p.NextSeq
}
