package queue

// skips remember the newest run of offsets that were settled without a delivery,
// for the record that lies directly above it (wire 12.2: skipped_before). The
// group's lock guards them.
type skips struct{ count, end uint64 }

// add takes in n offsets that end before end.
func (s *skips) add(n, end uint64) {
	if s.end != end-n {
		s.count = 0
	}
	s.count, s.end = s.count+n, end
}

// take is how many offsets directly below were skipped, and tells it once.
func (s *skips) take(offset uint64) uint64 {
	if s.end != offset {
		return 0
	}
	n := s.count
	s.count = 0
	return n
}

// restore takes back what take told of a record that was not handed out.
func (s *skips) restore(offset, n uint64) {
	if n > 0 {
		s.count, s.end = n, offset
	}
}
