package kvlog

import (
	"context"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
)

func newSum() hash.Hash32 { return crc32.New(castagnoli) }

// writeKeyIndex writes the snapshot, a piece at a time while writers go on: as a
// temporary file, synced and then renamed.
func (c *core) writeKeyIndex(ctx context.Context) (err error) {
	name := filepath.Join(c.opt.Dir, KeyIndexName)
	temp := name + fs.TempSuffix
	if err := c.opt.FS.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := c.opt.FS.Create(temp)
	if err != nil {
		return err
	}
	err = c.fillKeyIndex(ctx, &summedFile{file: file, sum: newSum()})
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, c.opt.FS.Remove(temp))
	}
	if err := c.opt.FS.Rename(temp, name); err != nil {
		return err
	}
	return c.opt.FS.SyncDir(c.opt.Dir)
}

func (c *core) fillKeyIndex(ctx context.Context, w *summedFile) error {
	head := keyIndexHead{kind: c.kind.code(), covered: c.applied.Load()}
	buf := head.append(nil)
	var tail keyIndexTail
	for from, end := uint32(0), false; !end; {
		var n uint64
		buf, n, from, end = c.appendEntries(buf, from)
		tail.count += n
		if err := errors.Join(ctx.Err(), w.write(buf)); err != nil {
			return err
		}
		buf = buf[:0]
	}
	// What the snapshot shows lies below here. After a crash that takes any of
	// it the snapshot would be refused.
	tail.checked = c.applied.Load()
	err := c.log.Flush()
	if err == nil {
		tail.checkCRC, err = c.crcAt(tail.checked)
	}
	if err == nil {
		err = w.write(tail.append(buf))
	}
	if err == nil {
		err = w.write(binary.BigEndian.AppendUint32(nil, w.sum.Sum32()))
	}
	if err != nil {
		return err
	}
	return w.file.Sync()
}

// appendEntries appends the entries of the next slots.
func (c *core) appendEntries(dst []byte, from uint32) (_ []byte, count uint64, next uint32, end bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	next = min(from+walkSlots, x.used)
	for n := from; n < next; n++ {
		if s := x.at(n); s.key != "" {
			dst = appendKeyIndexEntry(dst, s.key, &s.entry)
			count++
		}
	}
	return dst, count, next, next == x.used
}

// syncEvery is how many bytes of the snapshot are synced at a time: one sync of
// all of it would keep the device from the writers.
const syncEvery = 4 << 20

// A summedFile is written from its start, and summed.
type summedFile struct {
	file       fs.File
	at, synced int64
	sum        hash.Hash32
}

func (w *summedFile) write(b []byte) error {
	if _, err := w.file.WriteAt(b, w.at); err != nil {
		return err
	}
	w.at += int64(len(b))
	if _, err := w.sum.Write(b); err != nil {
		return err
	}
	if w.at-w.synced < syncEvery {
		return nil
	}
	w.synced = w.at
	return w.file.Sync()
}
