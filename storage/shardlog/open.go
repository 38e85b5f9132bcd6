package shardlog

import (
	"fmt"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

// Open opens the log in dir, creating it if there is none, after repairing what
// a crash left unfinished (storage 12). Damage that is no crash's is refused
// with a *segment.CorruptionError and changes nothing. At most one log may be
// open on a directory.
func Open(f fs.FS, dir string, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	start := o.Clock.Now()
	if o.Began.IsZero() {
		o.Began = start
	}
	l := &Log{fs: markedFS{f}, dir: dir, opts: o, began: o.Began, metrics: o.Metrics, retention: o.Retention}
	l.commitFn = l.commit
	if err := fs.MkdirDurable(l.fs, dir); err != nil {
		return nil, fmt.Errorf("log %s: %w", o.Name, err)
	}
	plan, err := recovery.Inspect(l.fs, dir, recovery.Options{
		VerifyAll: o.VerifyAll, RepairChecksumTail: o.RepairChecksumTail,
		IndexSpacing: o.IndexSpacing, BaseOffset: o.BaseOffset,
	})
	if err == nil {
		err = recovery.Apply(l.fs, dir, plan)
	}
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", o.Name, err)
	}
	for _, w := range plan.Warnings {
		o.Logger.Warn(w, "log", o.Name)
	}
	if err := l.load(plan); err != nil {
		l.abandon()
		return nil, fmt.Errorf("log %s: %w", o.Name, err)
	}
	l.joinJournal()
	l.metrics.RecoveryTruncatedBytes.Add(uint64(plan.CutBytes))
	l.metrics.RecoveryAbandonedRolls.Add(uint64(plan.AbandonedRolls))
	l.metrics.IndexRebuilds.Add(uint64(plan.IndexRebuilds))
	l.metrics.RecoveryDuration.Observe(o.Clock.Now().Sub(start))
	return l, l.SetRetention(o.Retention)
}

// load takes over what recovery found.
func (l *Log) load(p *recovery.Plan) error {
	l.nextID = p.NextID
	l.loadReplication(p)
	if len(p.Segments) == 0 {
		s := l.newSeg(l.takeID(), l.opts.BaseOffset)
		l.replaceAll(s)
		if err := l.begin(s); err != nil {
			return err
		}
	} else if err := l.resume(p); err != nil {
		return err
	}
	if !l.opts.Producers {
		return nil
	}
	l.producers = producer.NewTable(DefaultMaxProducers, DefaultProducerWindow)
	return l.loadProducers()
}

// begin creates the file of s, the only segment of the log.
func (l *Log) begin(s *seg) error {
	file, err := recovery.CreateSegment(l.fs, l.dir, s.id, l.nextHeader(), l.firstReserve())
	if err != nil {
		return err
	}
	s.written, s.reserved = segment.HeaderSize, l.firstReserve()
	s.synced.Store(segment.HeaderSize)
	s.activate(l.opts.Descriptors.hold(l, s, file), l.opts.IndexSpacing, nil)
	l.active = s
	l.nextID = s.id + 1
	l.count(s)
	return l.openMark(segmentMark(s, segment.HeaderSize))
}

// resume continues the log that is there.
func (l *Log) resume(p *recovery.Plan) error {
	for i := range p.Segments {
		s := l.recovered(&p.Segments[i])
		l.segments = append(l.segments, s)
		// Where the records of a time are gone, a header tells that there were.
		l.claimedMicros = max(l.claimedMicros, s.newest.Load(), p.Segments[i].CreatedMicros)
		l.count(s)
	}
	newest := p.Active()
	s := l.segments[len(l.segments)-1]
	file, err := l.fs.OpenWrite(s.path)
	if err != nil {
		return err
	}
	s.activate(l.opts.Descriptors.hold(l, s, file), l.opts.IndexSpacing, newest.Index)
	l.active = s
	// The mark says how many bytes are durable, and not that there are no more:
	// a cut lowers it first, and may not have become durable itself.
	if err := file.Sync(); err != nil {
		return err
	}
	l.written = position{offset: p.Tail, crc: p.LastCRC}
	l.claimed, l.claimedCRC = p.Tail, p.LastCRC
	l.base.Store(l.segments[0].base)
	l.durable.Store(p.Tail)
	l.tail.Store(p.Tail)
	return l.openMark(segmentMark(s, s.written))
}

// loadReplication reconciles the two files of a copy's promises: the ballot is
// written first, so one that is ahead is what was promised (storage 5).
func (l *Log) loadReplication(p *recovery.Plan) {
	r := &l.replication
	r.generations, r.replica, r.ballot = p.Generations, p.Replica, p.Ballot
	r.replica.Generation = max(r.replica.Generation, r.ballot.Generation)
	r.saved = r.replica.CommitOffset
}

// abandon closes what a failed opening has opened.
func (l *Log) abandon() {
	_ = l.closeFiles() // nothing was written that is not synced
}
