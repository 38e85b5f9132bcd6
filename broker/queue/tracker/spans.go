package tracker

import "sort"

// span is a run of finished offsets.
type span struct{ from, to uint64 } // to is not in it

// spans are finished offsets above the cursor: ascending, apart from each other.
type spans struct {
	s    []span
	head int // those before are used up
}

func (s *spans) live() []span { return s.s[s.head:] }

// reaching is the index of the first span that ends at or after offset.
func (s *spans) reaching(offset uint64) int {
	live := s.live()
	return sort.Search(len(live), func(i int) bool { return live[i].to >= offset })
}

// end is where the span that holds offset ends.
func (s *spans) end(offset uint64) (to uint64, ok bool) {
	live := s.live()
	if len(live) == 0 {
		return 0, false
	}
	i := s.reaching(offset + 1)
	if i < len(live) && live[i].from <= offset {
		return live[i].to, true
	}
	return 0, false
}

// from counts the spans that begin at or after offset.
func (s *spans) from(offset uint64) int {
	live := s.live()
	return len(live) - sort.Search(len(live), func(i int) bool { return live[i].from >= offset })
}

// joins: offset is in a span or touches one, so that adding it makes none.
func (s *spans) joins(offset uint64) bool {
	live := s.live()
	i := s.reaching(offset)
	return i < len(live) && live[i].from <= offset+1
}

func (s *spans) add(offset uint64) {
	live := s.live()
	i := s.reaching(offset)
	switch {
	case i == len(live) || live[i].from > offset+1:
		s.insert(i, span{offset, offset + 1})
	case live[i].from == offset+1:
		live[i].from = offset
	case live[i].to == offset:
		live[i].to++
		if i+1 < len(live) && live[i+1].from == live[i].to {
			live[i].to = live[i+1].to
			s.delete(i + 1)
		}
	}
}

// insert and delete move the shorter side.

func (s *spans) insert(i int, x span) {
	n := len(s.live())
	if s.head > 0 && i <= n/2 {
		s.head--
		live := s.live()
		copy(live[:i], live[1:i+1])
		live[i] = x
		return
	}
	if s.head > 0 && len(s.s) == cap(s.s) {
		s.s = s.s[:copy(s.s, s.live())]
		s.head = 0
	}
	s.s = append(s.s, x)
	live := s.live()
	copy(live[i+1:], live[i:n])
	live[i] = x
}

func (s *spans) delete(i int) {
	live := s.live()
	if i < len(live)/2 {
		copy(live[1:i+1], live[:i])
		s.head++
		return
	}
	copy(live[i:], live[i+1:])
	s.s = s.s[:len(s.s)-1]
}

// pass moves a cursor over the spans it has reached, and uses them up.
func (s *spans) pass(cursor uint64) uint64 {
	for _, x := range s.live() {
		if x.from > cursor {
			break
		}
		cursor = max(cursor, x.to)
		s.head++
	}
	if s.head == len(s.s) {
		s.clear()
	}
	return cursor
}

// below counts the finished offsets below base.
func (s *spans) below(base uint64) (n uint64) {
	for _, x := range s.live() {
		if x.from >= base {
			break
		}
		n += min(x.to, base) - x.from
	}
	return n
}

func (s *spans) clear() { s.s, s.head = s.s[:0], 0 }
