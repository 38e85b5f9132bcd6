package tracker

import "slices"

// maxMembers bounds the members remembered for Reclaim.
const maxMembers = 1024

// member is who stays the same over connections (wire 12.2).
type member struct{ consumer, principal string }

func (h Holder) member() member { return member{h.Consumer, h.Principal} }

// reclaimed is what a member's last reclaim left.
type reclaimed struct {
	newest   uint64   // the connection of it
	reserved []uint64 // ascending; outdated ones among them
	live     int      // reserved still
}

// Reclaim sets aside, for h.Connection, the claims that h's member took over
// older connections: those end, and the records are owed to this connection
// alone until the claims would have lapsed (broker 10.4, wire 12.2). A second
// reclaim of a connection, one of a connection older than the newest that
// reclaimed, and one without a consumer name do nothing.
func (t *Tracker) Reclaim(h Holder) {
	if h.Consumer == "" {
		return
	}
	r := t.members[h.member()]
	if r == nil {
		if t.members == nil {
			t.members = make(map[member]*reclaimed)
		}
		if len(t.members) >= maxMembers {
			t.forget()
		}
		r = &reclaimed{}
		t.members[h.member()] = r
	} else if h.Connection <= r.newest {
		return
	}
	r.newest = h.Connection
	if !t.older(h) {
		return
	}
	id := t.holders.hold(h)
	var offsets []uint64
	for offset, e := range t.entries {
		if e.state != Claimed && !e.is(reserved) {
			continue
		}
		if by := t.holders.get(e.holder); by.member() != h.member() || by.Connection >= h.Connection {
			continue
		}
		next := e
		next.state, next.holder = Owed, id
		next.flags |= reserved
		t.set(offset, e, next)
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	r.reserved, r.live = offsets, len(offsets)
	t.holders.release(id)
}

// older: h's member holds something over an older connection.
func (t *Tracker) older(h Holder) bool {
	return slices.ContainsFunc(t.holders.slots, func(s holderSlot) bool {
		return s.refs > 0 && s.holder.member() == h.member() && s.holder.Connection < h.Connection
	})
}

// forget drops the member that reclaimed on the oldest connection.
func (t *Tracker) forget() {
	var oldest member
	var r *reclaimed
	for m, c := range t.members {
		if r == nil || c.newest < r.newest || c.newest == r.newest && m.less(oldest) {
			oldest, r = m, c
		}
	}
	delete(t.members, oldest)
	for _, offset := range r.reserved {
		if e, ok := t.reservedFor(offset, oldest, r); ok {
			t.set(offset, e, e.owe())
		}
	}
}

func (m member) less(o member) bool {
	return m.consumer < o.consumer || m.consumer == o.consumer && m.principal < o.principal
}

// reservedFor is the entry of offset if it is reserved for a member's newest
// connection.
func (t *Tracker) reservedFor(offset uint64, m member, r *reclaimed) (entry, bool) {
	e, ok := t.entries[offset]
	if !ok || !e.is(reserved) {
		return entry{}, false
	}
	return e, t.holders.get(e.holder) == Holder{m.consumer, m.principal, r.newest}
}

// unreserve counts one reservation less for a holder's member.
func (t *Tracker) unreserve(id holderID) {
	h := t.holders.get(id)
	r := t.members[h.member()]
	if r == nil || r.newest != h.Connection {
		return
	}
	r.live--
	if r.live == 0 {
		r.reserved = nil
	} else if len(r.reserved) > slack(r.live) {
		// The entry that stops being reserved is still in the map as it was.
		// It stays listed until the next time, and is not taken then.
		r.reserved = slices.DeleteFunc(r.reserved, func(offset uint64) bool {
			_, ok := t.reservedFor(offset, h.member(), r)
			return !ok
		})
	}
}
