package stream

// A ShardState is how far a shard serves.
type ShardState string

const (
	InMemory    ShardState = "memory"    // no log under it
	BeingOpened ShardState = "opening"   // its log is being opened
	Serving     ShardState = "serving"   // reads and writes
	ReadOnly    ShardState = "read_only" // its disk failed: what is durable can be read
	Refused     ShardState = "refused"   // its log was not opened
	Ended       ShardState = "ended"     // removed, or the broker stops
)

// A ShardStatus describes a shard now.
type ShardStatus struct {
	State ShardState
	// Err says why a shard is ReadOnly, Refused or Ended.
	Err error
	// Oldest and Tail bound what can be read; Durable is up to where it
	// survives the machine (the tail of a shard in memory never does: 0).
	Oldest, Tail, Durable uint64
	// Bytes are on disk, in all segments.
	Bytes int64
	// Pending batches are accepted and not answered.
	Pending int
	// Subscriptions are open now.
	Subscriptions int
}

// Status describes the shard.
func (sh *Shard) Status() ShardStatus {
	st := ShardStatus{State: InMemory}
	sh.mu.Lock()
	st.Subscriptions = len(sh.slots)
	end := sh.end
	sh.mu.Unlock()
	d := sh.durable
	var o *openedLog
	if d != nil {
		o = d.current.Load()
	}
	switch {
	case end != nil:
		st.State, st.Err = Ended, end
		return st
	case d == nil:
		st.Oldest, st.Tail = sh.Bounds()
		return st
	case o == nil:
		st.State = BeingOpened
		return st
	case o.refused != nil:
		st.State, st.Err = Refused, o.refused
		return st
	}
	st.State = Serving
	if st.Err = o.log.Err(); st.Err != nil {
		st.State = ReadOnly
	}
	st.Oldest, st.Tail = sh.Bounds()
	st.Durable, st.Bytes = o.log.Durable(), o.log.Bytes()
	st.Pending = d.turns.count()
	return st
}
