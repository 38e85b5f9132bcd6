package wire

// A StartKind is a place to begin reading (wire 7.4, 7.7).
type StartKind uint8

// The places.
const (
	StartLatest   StartKind = 0 // the tail
	StartEarliest StartKind = 1 // the oldest record kept
	StartOffset   StartKind = 2 // a given offset: the first record not seen yet
)

// A Start is "latest", "earliest" or {"offset":n} (wire 7.4, 7.7). The zero
// value is "latest".
type Start struct {
	Kind   StartKind
	Offset uint64 // with StartOffset
}

// StartAt is the start at an offset.
func StartAt(offset uint64) Start { return Start{Kind: StartOffset, Offset: offset} }

// append writes the start as a member; read reads one whose name was found.
func (s *Start) append(o object, name string) object {
	switch s.Kind {
	case StartEarliest:
		return o.text(name, "earliest")
	case StartOffset:
		return o.object(name, s)
	}
	return o.text(name, "latest")
}

func (s *Start) read(f *fields, name string) {
	if f.s.peek() == '"' {
		word(f, name, &s.Kind, startKindByName)
		return
	}
	s.Kind = StartOffset
	f.object(name, s)
}

func (s *Start) appendFields(o object) object { return o.u64("offset", s.Offset) }

func (s *Start) readFields(f *fields) { f.u64("offset", &s.Offset) }

func startKindByName(name string) (StartKind, bool) {
	switch name {
	case "latest":
		return StartLatest, true
	case "earliest":
		return StartEarliest, true
	}
	return 0, false
}

// A Condition is what cache_put_if demands of the present entry: that there is
// none, "absent", or that it has a version, {"version":n} (wire 7.5).
type Condition struct {
	Absent  bool
	Version uint64 // unless Absent
}

func (c *Condition) append(o object, name string) object {
	if c.Absent {
		return o.text(name, "absent")
	}
	return o.object(name, c)
}

func (c *Condition) read(f *fields, name string) {
	if f.s.peek() == '"' {
		word(f, name, &c.Absent, absentByName)
		return
	}
	f.object(name, c)
}

func (c *Condition) appendFields(o object) object { return o.u64("version", c.Version) }

func (c *Condition) readFields(f *fields) { f.u64("version", &c.Version) }

func absentByName(name string) (bool, bool) { return true, name == "absent" }
