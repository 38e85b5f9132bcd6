package shardlog

import (
	"errors"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/segment"
)

// saveProducers stores the state of the producers as it was when the log ended
// at asOf. All below asOf is on the device by now, so that the file never
// vouches for records that a power loss takes. It is derived: that it fails
// costs a replay.
func (l *Log) saveProducers(asOf uint64) {
	if l.producers == nil {
		return
	}
	l.mu.Lock()
	snapshot := l.producers.AppendSnapshot(nil, asOf)
	l.mu.Unlock()
	path := filepath.Join(l.dir, segment.ProducersFile)
	if err := fs.WriteDurable(l.fs, path, snapshot); err != nil {
		l.opts.Logger.Warn("producer snapshot not written", "log", l.opts.Name, "error", err)
	}
}

// loadProducers restores the state of the producers: from the snapshot and the
// batches after it, or from all batches where there is no usable one.
func (l *Log) loadProducers() error {
	from := l.Base()
	limit := producer.MaxSnapshot(DefaultMaxProducers, DefaultProducerWindow)
	data, err := fs.ReadFile(l.fs, filepath.Join(l.dir, segment.ProducersFile), limit)
	if err == nil {
		var asOf uint64
		l.producers, asOf, err = producer.Restore(data, DefaultMaxProducers, DefaultProducerWindow)
		if err == nil && (asOf < from || asOf > l.Tail()) {
			err = producer.ErrSnapshot
		}
		if err == nil {
			from = asOf
		}
	}
	if err != nil {
		l.producers = producer.NewTable(DefaultMaxProducers, DefaultProducerWindow)
		if !errors.Is(err, fs.ErrNotExist) {
			l.opts.Logger.Warn("producer snapshot not used", "log", l.opts.Name, "error", err)
		}
		if from < l.Tail() {
			l.metrics.ProducerRebuilds.Add(1)
		}
	}
	return l.replayProducers(from)
}

func (l *Log) replayProducers(from uint64) error {
	for from < l.Tail() {
		page, err := l.read(from, replayBytes, 0, true)
		if err != nil {
			return err
		}
		for i := range page.Batches {
			if b := &page.Batches[i]; b.HasProducer && b.BaseOffset >= from {
				l.producers.Record(b.ProducerID, b.Sequence, producer.Digest(b.Block), b.BaseOffset, b.Count)
			}
		}
		from = page.Next
		page.Release()
	}
	l.producers.Trim(l.Base())
	return nil
}

// replayBytes is how much a replay reads at once.
const replayBytes = 1 << 20
