package stream

// offered is what became of a batch at one subscription's queue.
type offered uint8

const (
	offerTaken offered = iota
	offerDropped
	offerParked
	offerEnded
	// offerLagged: the batch was lost and the subscription ends with that.
	offerLagged
)

// offer tries to queue e, with a reference that is the subscription's if the
// answer is offerTaken or offerParked.
func (s *Subscription) offer(e *Envelope) offered {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return offerEnded
	}
	if s.room(e.Size()) {
		s.push(e)
		return offerTaken
	}
	if s.policy == Block && !s.lenient {
		s.parked = e
		s.hasParked.Store(true)
		// Room given back before the flag was up went unnoticed.
		if !s.room(e.Size()) {
			return offerParked
		}
		s.unpark()
		s.push(e)
		return offerTaken
	}
	if s.catching { // the log will fill the hole
		s.missedTo = e.end()
		return offerDropped
	}
	s.droppedBatches.Add(1)
	s.droppedRecords.Add(uint64(e.meta.Count))
	c := &s.shard.hub.counters
	c.droppedBatches.Add(1)
	c.droppedRecords.Add(uint64(e.meta.Count))
	if s.policy == DropOld {
		c.dropOldBatch.Add(1)
	}
	if s.endOnDrop {
		s.end = &LaggedError{ResumeFrom: e.meta.BaseOffset}
		s.signal()
		return offerLagged
	}
	return offerDropped
}

// room says whether a batch of the given size may be queued. An empty queue
// takes any.
func (s *Subscription) room(size int64) bool {
	depth := s.depth.Load()
	return depth == 0 || depth < s.capacity && s.bytes.Load()+size <= s.maxBytes
}

// crowded says that the queue is half full.
func (s *Subscription) crowded() bool { return 2*s.depth.Load() > s.capacity }

// push queues e; mu is held.
func (s *Subscription) push(e *Envelope) {
	s.depth.Add(1)
	s.bytes.Add(e.Size())
	s.queue = append(s.queue, Piece{Envelope: e, queue: s, generation: e.generation()})
	if len(s.queue) == 1 {
		s.signal()
	}
}

// unpark takes the waiting batch off its place; mu is held.
func (s *Subscription) unpark() *Envelope {
	parked := s.parked
	s.parked = nil
	s.hasParked.Store(false)
	return parked
}

// leave gives back the room of one released batch, and lets the batch that
// waits for room in.
func (s *Subscription) leave(size int64) {
	s.bytes.Add(-size)
	s.depth.Add(-1)
	if s.hasParked.Load() {
		s.admitParked()
	}
}

func (s *Subscription) admitParked() {
	s.mu.Lock()
	if s.parked == nil || !s.room(s.parked.Size()) {
		s.mu.Unlock()
		return
	}
	s.push(s.unpark())
	s.mu.Unlock()
	s.shard.hub.counters.enqueued.Add(1)
	s.shard.settled()
}
