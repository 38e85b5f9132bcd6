package producer

// The producers of a table are a list in the order of their newest batches, so
// that the coldest is at hand when room is needed, and the latest when a write
// fails.

func (t *Table) linkNewest(p *producer) { t.linkAfter(t.newest, p) }

// linkAfter puts p behind at, or first if at is nil.
func (t *Table) linkAfter(at, p *producer) {
	p.older = at
	if at == nil {
		p.newer, t.oldest = t.oldest, p
	} else {
		p.newer, at.newer = at.newer, p
	}
	if p.newer == nil {
		t.newest = p
	} else {
		p.newer.older = p
	}
}

func (t *Table) unlink(p *producer) {
	if p.older == nil {
		t.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
	if p.newer == nil {
		t.newest = p.older
	} else {
		p.newer.older = p.older
	}
	p.older, p.newer = nil, nil
}

// merge puts producers, sorted by newest batch, back into the order.
func (t *Table) merge(sorted []*producer) {
	at := t.newest
	for i := len(sorted) - 1; i >= 0; i-- {
		p := sorted[i]
		for at != nil && at.latest().first > p.latest().first {
			at = at.older
		}
		t.linkAfter(at, p)
	}
}
