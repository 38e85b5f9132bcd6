package cli

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// A wallClock is the clock of the machine.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// shards makes a storage directory with three logs: shards DIR. The stream
// acme/default/whole is whole, the cache acme/default/torn ends in half a
// batch, and the stream acme/default/rotten has a flipped bit.
func shards(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shards DIR")
	}
	root := ts.MkAbs(args[0])
	store, err := storage.Open(fs.OS(), storage.Config{Root: root, Log: shardlog.Options{Fsync: shardlog.OnCommit}},
		storage.Deps{Clock: wallClock{}, Logger: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	file := func(space storage.Space, name string) string {
		key := storage.Key{Tenant: "acme", Namespace: "default", Name: name}
		log, err := store.OpenLog(context.Background(), space, key, storage.LogOptions{})
		ts.Check(err)
		block := binary.BigEndian.AppendUint32(nil, 1)
		block = append(binary.BigEndian.AppendUint32(block, 5), "hello"...)
		for range 3 {
			_, err := log.AppendWait(&shardlog.Entry{Kind: segment.Records, Count: 1, Block: block})
			ts.Check(err)
		}
		return filepath.Join(log.Dir(), segment.FileName(0))
	}
	file(storage.Streams, "whole")
	torn, rotten := file(storage.Caches, "torn"), file(storage.Streams, "rotten")
	ts.Check(store.Close())

	data, err := os.ReadFile(torn)
	ts.Check(err)
	ts.Check(os.WriteFile(torn, append(data, data[segment.HeaderSize:segment.HeaderSize+50]...), 0o600))
	data, err = os.ReadFile(rotten)
	ts.Check(err)
	data[segment.HeaderSize+segment.BatchHeaderSize+10] ^= 4
	ts.Check(os.WriteFile(rotten, data, 0o600))
}
