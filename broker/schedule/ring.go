package schedule

// A tenantRing is the tenants that have a ready lane, the one whose turn it is
// first.
type tenantRing struct {
	head, tail *Tenant
	n          int
}

func (r *tenantRing) push(t *Tenant) {
	t.next = nil
	if r.tail == nil {
		r.head = t
	} else {
		r.tail.next = t
	}
	r.tail = t
	r.n++
}

func (r *tenantRing) pushFront(t *Tenant) {
	t.next = r.head
	r.head = t
	if r.tail == nil {
		r.tail = t
	}
	r.n++
}

func (r *tenantRing) pop() *Tenant {
	t := r.head
	r.head = t.next
	if r.head == nil {
		r.tail = nil
	}
	t.next = nil
	r.n--
	return t
}

// ready adds a lane that has a job and is not held to its tenant's turn. A
// tenant that left the ring in the middle of its turn, because its lanes were
// all busy, goes on with it.
func (s *Scheduler) ready(l *Lane) {
	t := l.tenant
	t.pushReady(l)
	switch {
	case t.inRing:
	case t.inTurn:
		s.ring.pushFront(t)
	default:
		s.ring.push(t)
	}
	t.inRing = true
}

// next takes the job whose turn it is and holds its lane; nil when no lane is
// ready (broker 4.3).
//
// A tenant gets one quantum at the start of its turn and is served until what
// it has left does not pay for its next job. Then it goes to the back and
// keeps the rest. A tenant with nothing ready leaves the ring: debt stays,
// credit does not, so that nobody saves up turns while idle.
func (s *Scheduler) next() (*Lane, *Job) {
	passed := 0 // turns in a row that served nobody
	for s.ring.head != nil {
		t := s.ring.head
		if !t.inTurn {
			t.inTurn = true
			t.deficit += s.cfg.Quantum
		}
		cost := max(t.readyHead.head.Cost, 1)
		if t.deficit < cost {
			t.inTurn = false
			s.ring.push(s.ring.pop())
			if passed++; passed == s.ring.n {
				s.skipRounds()
				passed = 0
			}
			continue
		}
		t.deficit -= cost
		l := t.popReady()
		j := l.pop()
		l.held = true
		s.held++
		if t.readyHead == nil {
			s.ring.pop()
			t.inRing = false
		}
		if t.jobs == 0 {
			t.inTurn = false
			t.deficit = min(t.deficit, 0)
		}
		s.freeSlot(t)
		return l, j
	}
	return nil, nil
}

// skipRounds grants at once the rounds in which no tenant could pay, so that a
// job of many quanta does not cost that many walks of the ring.
func (s *Scheduler) skipRounds() {
	rounds := int64(1<<62 - 1)
	for t := s.ring.head; t != nil; t = t.next {
		short := max(t.readyHead.head.Cost, 1) - t.deficit
		rounds = min(rounds, (short+s.cfg.Quantum-1)/s.cfg.Quantum)
	}
	for t := s.ring.head; t != nil && rounds > 1; t = t.next {
		t.deficit += (rounds - 1) * s.cfg.Quantum
	}
}
