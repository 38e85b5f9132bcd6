package stream

// A Waiter hears that the last full queue has taken the batch Apply left
// waiting. It runs on a consumer's goroutine and must not block.
type Waiter interface {
	Settled()
}

// An Outcome is how a batch was received.
type Outcome struct {
	// Waiting: at least one queue under [Block] had no room.
	Waiting bool
	// Crowded: the batch filled some queue past its half, so whoever publishes
	// on should let the readers run first.
	Crowded bool
}

// Claim gives e the shard's next offsets and returns the first. The caller
// holds the shard's lane; every claim is followed by its Apply, in the same
// order.
func (sh *Shard) Claim(e *Envelope) (uint64, error) {
	if err := sh.Err(); err != nil {
		return 0, err
	}
	base := sh.claimed
	e.meta.BaseOffset = base
	sh.claimed += uint64(e.meta.Count)
	return base, nil
}

// Apply makes a claimed batch visible: it joins the ring and is handed to
// every subscription. Calls for one shard are made one at a time, in the order
// of the claims; the next may follow once this one is settled. Apply takes
// over the caller's reference, whatever it answers.
//
// If the batch is left waiting, w is told, perhaps before Apply returns, when
// all queues have it; otherwise w is not used. A batch without records settles
// at once and changes nothing.
func (sh *Shard) Apply(e *Envelope, w Waiter) (Outcome, error) {
	defer e.release()
	if e.meta.Count == 0 {
		return Outcome{}, nil
	}
	sh.mu.Lock()
	if err := sh.end; err != nil {
		sh.mu.Unlock()
		return Outcome{}, err
	}
	if sh.snapshot == nil && len(sh.slots) > 0 {
		sh.snapshot = append([]*Subscription(nil), sh.slots...)
	}
	subs := sh.snapshot
	e.retain(1 + len(subs))
	if d := sh.durable; d != nil {
		// What lies between was committed and is never delivered.
		if e.meta.BaseOffset > sh.tail {
			e.meta.Skipped = e.meta.BaseOffset - sh.tail
			e.describe()
		}
		d.visible = e.end()
	}
	sh.tail = e.end()
	sh.ring.push(e)
	sh.mu.Unlock()
	sh.listeners.appended()

	c := &sh.hub.counters
	c.batches.Add(1)
	c.records.Add(uint64(e.meta.Count))
	c.bytes.Add(uint64(e.meta.PayloadBytes))
	if len(subs) == 0 {
		return Outcome{}, nil
	}
	sh.waiter = w
	sh.pending.Store(1)
	var taken uint64
	var out Outcome
	for _, s := range subs {
		if s.policy == Block {
			sh.pending.Add(1) // before the offer: it may settle at once
		}
		became := s.offer(e)
		if became == offerParked {
			c.parked.Add(1)
			continue
		}
		if s.policy == Block {
			sh.pending.Add(-1)
		}
		if became == offerLagged {
			sh.leave(s)
			c.subscriptions.Add(-1)
		}
		if became == offerTaken {
			taken++
			// A queue that is full already is no reason to yield: its reader
			// does not keep up, and must not slow the publisher.
			out.Crowded = out.Crowded || s.crowded()
		} else {
			e.release()
		}
	}
	c.enqueued.Add(taken)
	out.Waiting = sh.pending.Add(-1) > 0
	return out, nil
}

// settled says that one queue the batch waited for has taken it or is gone.
func (sh *Shard) settled() {
	if w := sh.waiter; sh.pending.Add(-1) == 0 {
		w.Settled()
	}
}
