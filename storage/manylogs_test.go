package storage

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// openFiles counts the descriptors of a file system, now and at most.
type openFiles struct {
	fs.FS
	now, most atomic.Int64
}

func (o *openFiles) count(f fs.File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	now := o.now.Add(1)
	for most := o.most.Load(); now > most && !o.most.CompareAndSwap(most, now); most = o.most.Load() {
	}
	return &countedFile{File: f, open: &o.now}, nil
}

func (o *openFiles) Create(name string) (fs.File, error)    { return o.count(o.FS.Create(name)) }
func (o *openFiles) Open(name string) (fs.File, error)      { return o.count(o.FS.Open(name)) }
func (o *openFiles) OpenWrite(name string) (fs.File, error) { return o.count(o.FS.OpenWrite(name)) }

type countedFile struct {
	fs.File
	open *atomic.Int64
	once sync.Once
}

func (f *countedFile) Close() error {
	f.once.Do(func() { f.open.Add(-1) })
	return f.File.Close()
}

// TestManyLogs (BR-53): a thousand logs of a hundred records, left by a process
// that was killed, open in parallel. Descriptors are bounded by what open logs
// hold, not by how they are opened or by how many segments they have.
func TestManyLogs(t *testing.T) {
	const (
		logs      = 1000
		records   = 100
		sealed    = 16 // descriptors of sealed segments
		parallel  = 4
		perLog    = 2 // the active segment and the mark
		perOpener = 2 // what one opening or reading holds for a moment
	)
	m := fstest.New(1)
	change := func(c *Config) {
		c.Log.Fsync = shardlog.None
		c.Log.SegmentBytes = 1500
		c.OpenParallel = parallel
		c.MaxOpenSealed = sealed
	}
	s := open(t, m, change)
	for i := range logs {
		log := mustOpen(t, s, Streams, key(i), LogOptions{})
		for range 4 {
			appendRecords(t, log, records/4, 20)
		}
	}
	if got := s.Stats(); got.OpenLogs != logs || got.Segments < 2*logs {
		t.Fatalf("%+v", got)
	}

	files := &openFiles{FS: m.Kill()}
	s = open(t, files, change)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() {
			log, err := s.OpenLog(context.Background(), Streams, key(i), LogOptions{Background: i%10 != 0})
			if err != nil {
				t.Error(err)
				return
			}
			if log.Base() != 0 || log.Tail() != records {
				t.Errorf("log %d: [%d, %d)", i, log.Base(), log.Tail())
			}
		})
	}
	wg.Wait()
	if got := s.Stats(); got.OpenLogs != logs || got.OpenSealed > sealed {
		t.Errorf("%+v", got)
	}
	if now, most := files.now.Load(), files.most.Load(); now > perLog*logs || most > perLog*logs+sealed+perOpener*(parallel+1) {
		t.Errorf("%d descriptors are open, at most %d were", now, most)
	}

	// Reading all of the sealed segments keeps to the bound.
	for i := range logs {
		page, err := mustOpen(t, s, Streams, key(i), LogOptions{}).Read(0, 1<<20, records)
		if err != nil {
			t.Fatal(err)
		}
		page.Release()
	}
	if now, most := files.now.Load(), files.most.Load(); now > perLog*logs+sealed || most > perLog*logs+sealed+perOpener*(parallel+1) {
		t.Errorf("%d descriptors are open, at most %d were", now, most)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if now := files.now.Load(); now != 0 {
		t.Errorf("%d descriptors are open after the closing", now)
	}
}
