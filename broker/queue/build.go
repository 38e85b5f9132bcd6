package queue

import (
	"errors"
	"slices"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

// pageBytes of keys and values are read at a time.
const pageBytes = 256 << 10

// build reads what is on disk of the group.
func (g *group) build() {
	defer close(g.built)
	if err := g.load(); err != nil {
		g.failed = g.shard.outcome(err)
		if g.failed == err {
			g.failed = g.shard.unavailable(Failed, err)
		}
		g.shard.drop(g)
		return
	}
	g.shard.store.evict.arm()
}

// load fills the group. Nobody else uses it yet.
func (g *group) load() error {
	marks, dead := g.shard.marks.Opened().Index, g.shard.letters.Opened().Index
	position, exists, err := g.readMark(marks)
	if err != nil {
		return err
	}
	counts := map[uint64]uint32{}
	err = g.eachRecord(marks, func(offset uint64, value []byte) (err error) {
		counts[offset], err = parseCount(value)
		return err
	})
	if err != nil {
		return err
	}
	g.letters.init()
	err = g.eachRecord(dead, func(offset uint64, value []byte) error {
		isRedriven, err := parseLetter(value)
		g.letters.put(offset, isRedriven)
		return err
	})
	if err != nil {
		return err
	}
	redriven := g.letters.redrivenOffsets()
	stale, buried := g.sort(counts, position.committed)
	_, tail := g.shard.src.Bounds()
	cfg := &g.shard.store.cfg

	g.mu.Lock()
	g.cursor.durable, g.cursor.exists = position, exists
	g.tracker = tracker.New(tracker.Options{MaxInFlight: cfg.MaxInFlight, MaxAttempts: cfg.MaxAttempts}, tracker.Start{
		Committed: position.committed,
		Handed:    position.handed,
		Rebuilt:   exists || len(counts) > 0 || len(redriven) > 0,
		Tail:      tail,
		Attempts:  counts,
		Redriven:  redriven,
	})
	for _, offset := range stale {
		g.dropCount(offset)
	}
	for _, offset := range buried {
		g.graves.add(offset)
		// As if it was acked. One more than the tracker has room for is given up
		// once more when its turn has come: it was handed out often enough.
		_, _ = g.tracker.Ack(offset, tail)
	}
	g.leave(teller{})
	return nil
}

// sort takes out of the counts what was left when a record was finished or put
// back in play, and what says that a record is given up, ahead of the position.
func (g *group) sort(counts map[uint64]uint32, committed uint64) (stale, buried []uint64) {
	for offset, n := range counts {
		isRedriven := g.letters.isRedriven(offset)
		switch {
		case isRedriven && n != givenUp:
		case isRedriven, offset < committed:
			stale = append(stale, offset)
			delete(counts, offset)
		case n == givenUp:
			buried = append(buried, offset)
		}
	}
	slices.Sort(buried)
	return stale, buried
}

// readMark reads the group's key.
func (g *group) readMark(marks *kvlog.Map) (m mark, exists bool, err error) {
	item, exists, err := marks.Get([]byte(g.name))
	if err != nil || !exists {
		return mark{}, false, err
	}
	if m, err = parseMark(item.Value); err != nil {
		err = &RecordError{Group: g.name, Key: g.name, Offset: item.Version, Err: err}
	}
	return m, true, err
}

// eachRecord visits the keys of the group's records in a log.
func (g *group) eachRecord(m *kvlog.Map, visit func(offset uint64, value []byte) error) error {
	prefix := recordPrefix(g.name)
	for {
		err := eachChange(m, prefix, func(c kvlog.Change) error {
			offset, err := parseRecordKey(c.Key, prefix)
			if err == nil {
				err = visit(offset, c.Value)
			}
			if err != nil {
				err = &RecordError{Group: g.name, Key: string(c.Key), Offset: c.Offset, Err: err}
			}
			return err
		})
		// Compaction dropped a value that was overwritten meanwhile: from the
		// beginning. Visiting a record twice is visiting it once.
		var trimmed *shardlog.TrimmedError
		if !errors.As(err, &trimmed) {
			return err
		}
	}
}

// eachChange visits what lives under a prefix.
func eachChange(m *kvlog.Map, prefix []byte, visit func(kvlog.Change) error) error {
	snapshot, err := m.Range(prefix)
	if err != nil {
		return err
	}
	for snapshot.Len() > 0 {
		page, err := snapshot.Next(pageBytes)
		if err != nil {
			return err
		}
		for _, c := range page {
			if err := visit(c); err != nil {
				return err
			}
		}
	}
	return nil
}
