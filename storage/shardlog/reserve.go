package shardlog

// Blocks are reserved in steps that double (storage 9.3): a small log does not
// hold a whole segment's blocks, and the step is taken after the answers of a
// round have gone out.
const firstReservation = 1 << 20

func (l *Log) firstReserve() int64 {
	if !l.opts.Preallocate {
		return 0
	}
	return min(firstReservation, l.opts.SegmentBytes)
}

// extendReservation takes the next step once half of the last one is used. That
// it fails costs nothing but the reservation. The caller holds io.
func (l *Log) extendReservation() {
	s := l.active
	if s.reserved == 0 || s.written <= s.reserved/2 || s.reserved >= l.opts.SegmentBytes {
		return
	}
	size := min(2*s.reserved, l.opts.SegmentBytes)
	if err := s.held.file.Reserve(size); err != nil {
		l.metrics.ReserveFailures.Add(1)
		return
	}
	s.reserved = size
}
