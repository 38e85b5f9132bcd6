package schedule

// A Tenant is one party to the fair turn. The scheduler's lock guards it.
type Tenant struct {
	s *Scheduler

	// queued counts slots taken: jobs in its lanes, which are jobs, and slots
	// reserved for them.
	queued, jobs int
	// deficit is what it may still take in its turn, in bytes; below zero it
	// is debt.
	deficit int64
	// inTurn says that the quantum of the turn it is having was added.
	inTurn bool

	// ready are its lanes with a job to run, in turn.
	readyHead, readyTail *Lane
	inRing               bool
	next                 *Tenant // in the ring of tenants with ready lanes

	waiters []*waiter // publishes waiting for a slot, in arrival order
	waiting waitList
}

// NewTenant adds a party. It costs nothing while it has no work and is
// forgotten with its last lane.
func (s *Scheduler) NewTenant() *Tenant { return &Tenant{s: s} }

// A Lane runs jobs one at a time, in order.
type Lane struct {
	tenant     *Tenant
	head, tail *Job
	// held: a job runs, or has run and waits to continue. A lane
	// with jobs that is not held is among its tenant's ready ones.
	held bool
	// waiters is how many publishes wait for a slot for this lane.
	waiters int
	next    *Lane // in its tenant's ready list
}

// NewLane adds a lane whose jobs are charged to t.
func (t *Tenant) NewLane() *Lane { return &Lane{tenant: t} }

// Continue runs the job that holds the lane once more, on the caller's
// goroutine, now that what it waited for has come.
func (l *Lane) Continue(j *Job) {
	s := l.tenant.s
	verdict := s.run(j)
	s.mu.Lock()
	if verdict != Held {
		s.release(l)
	}
	s.mu.Unlock()
}

// Guard runs a job that holds no lane, on the caller's goroutine, with the same
// care for its panics.
func (s *Scheduler) Guard(j *Job) Verdict { return s.run(j) }

func (l *Lane) push(j *Job) {
	l.tenant.jobs++
	j.next = nil
	if l.tail == nil {
		l.head = j
	} else {
		l.tail.next = j
	}
	l.tail = j
}

func (l *Lane) pop() *Job {
	j := l.head
	l.head = j.next
	if l.head == nil {
		l.tail = nil
	}
	j.next = nil
	l.tenant.jobs--
	return j
}

func (t *Tenant) pushReady(l *Lane) {
	l.next = nil
	if t.readyTail == nil {
		t.readyHead = l
	} else {
		t.readyTail.next = l
	}
	t.readyTail = l
}

func (t *Tenant) popReady() *Lane {
	l := t.readyHead
	t.readyHead = l.next
	if t.readyHead == nil {
		t.readyTail = nil
	}
	l.next = nil
	return l
}
