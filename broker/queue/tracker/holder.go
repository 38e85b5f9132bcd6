package tracker

// Holder is who holds a claim. Its strings are kept.
type Holder struct {
	Consumer  string // "": anonymous
	Principal string
	// Connection grows: of two connections of a node, the newer has the higher.
	Connection uint64
}

// holderID is an index into holders; 0 is nobody.
type holderID uint32

// holders stores each holder once, while something refers to it.
type holders struct {
	slots []holderSlot
	free  []holderID
	ids   map[Holder]holderID
}

type holderSlot struct {
	holder Holder
	refs   int
}

// hold is the id of h, counted once more.
func (s *holders) hold(h Holder) holderID {
	id, ok := s.ids[h]
	if !ok {
		if s.ids == nil {
			s.ids = make(map[Holder]holderID)
			s.slots = append(s.slots, holderSlot{})
		}
		if n := len(s.free); n > 0 {
			id, s.free = s.free[n-1], s.free[:n-1]
		} else {
			id = holderID(len(s.slots))
			s.slots = append(s.slots, holderSlot{})
		}
		s.slots[id] = holderSlot{holder: h}
		s.ids[h] = id
	}
	s.slots[id].refs++
	return id
}

// again counts id once more.
func (s *holders) again(id holderID) { s.slots[id].refs++ }

func (s *holders) release(id holderID) {
	if id == 0 {
		return
	}
	slot := &s.slots[id]
	if slot.refs--; slot.refs == 0 {
		delete(s.ids, slot.holder)
		*slot = holderSlot{}
		s.free = append(s.free, id)
	}
}

func (s *holders) get(id holderID) Holder {
	if id == 0 {
		return Holder{}
	}
	return s.slots[id].holder
}
