package demo

// A QueueReport says what the group did.
type QueueReport struct {
	// QueueFinished is how many records a worker has finished, of which
	// StrongWorked were strong quakes, of Strong there are. What a worker had
	// finished without the broker hearing of it may have been done twice.
	QueueFinished int `json:"queue_finished"`
	Strong        int `json:"strong"`
	StrongWorked  int `json:"strong_worked"`
	// QueueClaims is how often a worker was handed a record, and
	// QueueRedeliveries how often it was not the first to get it.
	QueueClaims        int     `json:"queue_claims"`
	QueueRedeliveries  int     `json:"queue_redeliveries"`
	QueueClaimMedianUS float64 `json:"queue_claim_median_us"`
	// WorkerKilled says that a worker was killed, ClaimsHeld how many records
	// it had, and ClaimsBack how many of those another worker got, all of them
	// ClaimsBackMS later.
	WorkerKilled bool    `json:"worker_killed"`
	ClaimsHeld   int     `json:"claims_held"`
	ClaimsBack   int     `json:"claims_back"`
	ClaimsBackMS float64 `json:"claims_back_ms"`
	// PoisonAttempts is how often the workers failed on the poison, before it
	// was given up as the one of the DeadLetters, at the latest at MaxAttempts
	// deliveries. Redriven says that it was put back in play, and
	// RedrivenWorked that a worker finished it then.
	Poison         string `json:"poison"`
	PoisonAttempts int    `json:"poison_attempts"`
	MaxAttempts    int    `json:"max_attempts"`
	GivenUp        bool   `json:"poison_given_up"`
	DeadLetters    int    `json:"dead_letters"`
	Redriven       bool   `json:"redriven"`
	RedrivenWorked bool   `json:"redriven_worked"`
	// QueueCommitted is the group's cursor at the end: everything below it is
	// finished. QueueTail is the end of the log.
	QueueCommitted uint64 `json:"queue_committed"`
	QueueTail      uint64 `json:"queue_tail"`
	QueueInFlight  uint64 `json:"queue_in_flight"`
	QueueOwed      uint64 `json:"queue_owed"`
	// DeadLettersLeft is how many are still given up.
	DeadLettersLeft uint64 `json:"dead_letters_left"`
	records         int
}

func (q *queue) report(records int, timing *timing) QueueReport {
	return QueueReport{
		QueueFinished: q.Finished, Strong: q.Strong, StrongWorked: q.Worked,
		QueueClaims: q.Claims, QueueRedeliveries: q.Redelivered, QueueClaimMedianUS: medianUS(timing.claimed),
		WorkerKilled: q.Killed, ClaimsHeld: q.Held, ClaimsBack: q.Back, ClaimsBackMS: float64(q.BackAfter.Microseconds()) / 1e3,
		Poison: q.Poison.Place, PoisonAttempts: q.Poison.Attempts, MaxAttempts: int(q.maxAttempts), GivenUp: q.Poison.GivenUp,
		DeadLetters: q.letters, Redriven: q.Poison.Redriven, RedrivenWorked: q.Poison.Worked,
		QueueCommitted: q.end.Committed, QueueTail: q.end.Tail, QueueInFlight: q.end.InFlight, QueueOwed: q.end.Owed,
		DeadLettersLeft: q.end.DeadLetters, records: records,
	}
}

// QueueOK says that the workers finished every record, the strong ones among
// them, and the group the whole log: its cursor is at the end, and nothing is
// left in anybody's hands.
func (r *QueueReport) QueueOK() bool {
	return r.QueueFinished == r.records && r.Strong > 0 && r.StrongWorked == r.Strong &&
		r.QueueCommitted == uint64(r.records) && r.QueueTail == uint64(r.records) && r.QueueInFlight == 0 && r.QueueOwed == 0
}

// WorkersOK says that a worker died with claims in its hands, and that every
// one of them came back.
func (r *QueueReport) WorkersOK() bool {
	return r.WorkerKilled && r.ClaimsHeld > 0 && r.ClaimsBack == r.ClaimsHeld && r.QueueRedeliveries >= r.ClaimsBack
}

// PoisonOK says that the poison alone was given up, after no more attempts
// than it may have, and was finished in the end. The kill of the broker may
// cost the count of one attempt.
func (r *QueueReport) PoisonOK() bool {
	return r.PoisonAttempts > 0 && r.PoisonAttempts <= r.MaxAttempts+1 && r.GivenUp && r.DeadLetters == 1 &&
		r.Redriven && r.RedrivenWorked && r.DeadLettersLeft == 0
}
