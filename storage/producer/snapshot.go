package producer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// The snapshot is the file "producers" of a log (storage 15). Big-endian:
//
//	u32 "FLXP", u16 version 1, u16 0, u64 as_of, u32 producers,
//	u32 CRC-32C of bytes 4 to 20 and of what follows byte 24
//	per producer, by newest batch: u64 id, u64 last sequence, u16 batches
//	    per batch, oldest first:   u64 first offset, u32 records, u64 digest
//
// It holds the batches below as_of. It is replaced at each roll, and derived:
// missing, damaged, or with as_of outside the log, it is rebuilt from the log.
const (
	snapshotMagic   = 0x464C5850
	snapshotVersion = 1
	snapshotHeader  = 24
	producerSize    = 18
	batchSize       = 20
)

// ErrSnapshot is wrapped by the errors of [Restore].
var ErrSnapshot = errors.New("producer snapshot is not usable")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaxSnapshot bounds the snapshot of a table of that size, in bytes.
func MaxSnapshot(maxProducers, window int) int64 {
	return snapshotHeader + int64(maxProducers)*(producerSize+int64(window)*batchSize)
}

// AppendSnapshot appends the table as it was when the log ended at asOf.
func (t *Table) AppendSnapshot(dst []byte, asOf uint64) []byte {
	held := t.heldBelow(asOf)
	begin := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, snapshotMagic)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint64(dst, asOf)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(held)))
	dst = binary.BigEndian.AppendUint32(dst, 0) // the checksum, below
	for _, h := range held {
		dst = h.append(dst, t.window)
	}
	binary.BigEndian.PutUint32(dst[begin+20:], snapshotSum(dst[begin:]))
	return dst
}

// held is a producer and how many of its oldest batches are meant.
type held struct {
	*producer
	batches int
}

func (h held) newestFirst() uint64 { return h.at(h.batches - 1).first }

// heldBelow lists the producers with batches below asOf, by the newest of these.
func (t *Table) heldBelow(asOf uint64) []held {
	var all []held
	for p := t.oldest; p != nil; p = p.newer {
		n := p.len()
		for n > 0 && p.at(n-1).end() > asOf {
			n--
		}
		if n > 0 {
			all = append(all, held{p, n})
		}
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.newestFirst(), b.newestFirst()) })
	return all
}

func (h held) append(dst []byte, window int) []byte {
	n := min(h.batches, window)
	dst = binary.BigEndian.AppendUint64(dst, h.id)
	dst = binary.BigEndian.AppendUint64(dst, h.last-uint64(h.len()-h.batches))
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	for i := h.batches - n; i < h.batches; i++ {
		b := h.at(i)
		dst = binary.BigEndian.AppendUint64(dst, b.first)
		dst = binary.BigEndian.AppendUint32(dst, b.count)
		dst = binary.BigEndian.AppendUint64(dst, b.digest)
	}
	return dst
}

func snapshotSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[4:20], castagnoli), castagnoli, b[snapshotHeader:])
}

// Restore reads a snapshot into a table of that size and says where the log
// ended when it was taken; what the log holds from there on is for
// [Table.Record]. The error wraps [ErrSnapshot]: rebuild from the whole log.
func Restore(b []byte, maxProducers, window int) (t *Table, asOf uint64, err error) {
	count, asOf, err := openSnapshot(b)
	if err != nil {
		return nil, 0, err
	}
	t = NewTable(maxProducers, window)
	r := reader{rest: b[snapshotHeader:], asOf: asOf}
	for range count {
		if err := r.producer(t); err != nil {
			return nil, 0, err
		}
	}
	if len(r.rest) > 0 {
		return nil, 0, unusable("%d bytes behind the end", len(r.rest))
	}
	return t, asOf, nil
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
}

func openSnapshot(b []byte) (count uint32, asOf uint64, err error) {
	if len(b) < snapshotHeader {
		return 0, 0, unusable("%d bytes", len(b))
	}
	if m := binary.BigEndian.Uint32(b); m != snapshotMagic {
		return 0, 0, unusable("magic %08x", m)
	}
	if v, own := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:]); v != snapshotVersion || own != 0 {
		return 0, 0, unusable("version %d, reserved %04x", v, own)
	}
	if sum, want := snapshotSum(b), binary.BigEndian.Uint32(b[20:]); sum != want {
		return 0, 0, unusable("checksum: computed %08x, stored %08x", sum, want)
	}
	return binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint64(b[8:]), nil
}

// reader walks a snapshot's producers. The checksum was right, so what it
// refuses is what another version, or nobody, would write.
type reader struct {
	rest   []byte
	asOf   uint64
	newest uint64 // first offset of the last producer's newest batch
	any    bool
}

func (r *reader) producer(t *Table) error {
	if len(r.rest) < producerSize {
		return unusable("cut within a producer")
	}
	id, last := binary.BigEndian.Uint64(r.rest), binary.BigEndian.Uint64(r.rest[8:])
	n := int(binary.BigEndian.Uint16(r.rest[16:]))
	r.rest = r.rest[producerSize:]
	if n == 0 || uint64(n-1) > last || len(r.rest) < n*batchSize {
		return unusable("producer %016x with %d batches up to sequence %d", id, n, last)
	}
	if t.producers[id] != nil {
		return unusable("producer %016x twice", id)
	}
	batches, err := r.batches(n)
	if err != nil {
		return err
	}
	if first := batches[n-1].first; r.any && first <= r.newest {
		return unusable("producer %016x out of order", id)
	}
	r.newest, r.any = batches[n-1].first, true
	for i, b := range batches {
		t.Record(id, last-uint64(n-1-i), b.digest, b.first, b.count)
	}
	return nil
}

func (r *reader) batches(n int) ([]batch, error) {
	batches := make([]batch, n)
	end := uint64(0)
	for i := range batches {
		b := batch{
			first:  binary.BigEndian.Uint64(r.rest),
			count:  binary.BigEndian.Uint32(r.rest[8:]),
			digest: binary.BigEndian.Uint64(r.rest[12:]),
		}
		r.rest = r.rest[batchSize:]
		if b.count == 0 || b.first < end || b.end() < b.first || b.end() > r.asOf {
			return nil, unusable("batch of %d records at offset %d", b.count, b.first)
		}
		end = b.end()
		batches[i] = b
	}
	return batches, nil
}
