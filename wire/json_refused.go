package wire

// A RefusedKind is why an idempotent or conditional batch was refused
// (wire 7.3, 9.6, 9.7).
type RefusedKind uint8

// The reasons.
const (
	RefusedUnknownProducer RefusedKind = 1
	RefusedSequenceExpired RefusedKind = 2
	RefusedSequenceReused  RefusedKind = 3
	RefusedSequenceGap     RefusedKind = 4
	RefusedOffsetMismatch  RefusedKind = 5
	RefusedNotLeader       RefusedKind = 6
)

// String is the name used in JSON.
func (k RefusedKind) String() string {
	switch k {
	case RefusedUnknownProducer:
		return "unknown_producer"
	case RefusedSequenceExpired:
		return "sequence_expired"
	case RefusedSequenceReused:
		return "sequence_reused"
	case RefusedSequenceGap:
		return "sequence_gap"
	case RefusedOffsetMismatch:
		return "offset_mismatch"
	case RefusedNotLeader:
		return "not_leader"
	}
	return "invalid"
}

// refusedKindByName knows the reasons that are a word of their own.
func refusedKindByName(name string) (RefusedKind, bool) {
	for k := RefusedUnknownProducer; k <= RefusedSequenceReused; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// A RefusedReason is the reason of publish_refused: a word, or an object with
// one member that carries what the kind says more (wire 7.3).
type RefusedReason struct {
	Kind     RefusedKind
	Expected uint64           // RefusedSequenceGap: the next sequence number
	Tail     uint64           // RefusedOffsetMismatch: the shard's tail
	NodeID   string           // RefusedNotLeader: the owner
	Addr     Optional[string] // RefusedNotLeader: its host:port
}

func (r *RefusedReason) append(o object, name string) object {
	if r.Kind < RefusedSequenceGap {
		return o.text(name, r.Kind.String())
	}
	return o.object(name, r)
}

func (r *RefusedReason) read(f *fields, name string) {
	if f.s.peek() == '"' {
		word(f, name, &r.Kind, refusedKindByName)
		return
	}
	f.object(name, r)
}

func (r *RefusedReason) appendFields(o object) object {
	return o.object(r.Kind.String(), &refusedArguments{r, r.Kind})
}

// readFields takes exactly one member.
func (r *RefusedReason) readFields(f *fields) {
	for k := RefusedSequenceGap; k <= RefusedNotLeader; k++ {
		if !f.at(k.String()) {
			continue
		}
		if r.Kind != 0 {
			f.fail(k.String(), badChoice)
			return
		}
		r.Kind = k
		f.object(k.String(), &refusedArguments{r, k})
	}
	if f.complete() && r.Kind == 0 {
		f.fail("", badWord)
	}
}

// refusedArguments is the inner object of a reason.
type refusedArguments struct {
	*RefusedReason
	kind RefusedKind
}

func (a *refusedArguments) appendFields(o object) object {
	switch a.kind {
	case RefusedSequenceGap:
		return o.u64("expected", a.Expected)
	case RefusedOffsetMismatch:
		return o.u64("tail", a.Tail)
	}
	return o.text("node_id", a.NodeID).optText("addr", a.Addr)
}

func (a *refusedArguments) readFields(f *fields) {
	switch a.kind {
	case RefusedSequenceGap:
		f.u64("expected", &a.Expected)
	case RefusedOffsetMismatch:
		f.u64("tail", &a.Tail)
	case RefusedNotLeader:
		f.text("node_id", &a.NodeID)
		f.optText("addr", &a.Addr)
	}
}
