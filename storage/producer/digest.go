package producer

import (
	"encoding/binary"
	"hash/crc64"
)

// The ECMA table with the complements of hash/crc64 is CRC-64/XZ.
var xz = crc64.MakeTable(crc64.ECMA)

// Digest tells the payloads of two batches apart (storage 15). It is chained
// over the records of a block, from 0:
//
//	r = crc64(be64(len) ‖ payload)
//	d = crc64(be64(d) ‖ be64(r))
//
// The block is well formed; a length that does not fit ends it.
func Digest(block []byte) uint64 {
	const countSize, lengthSize = 4, 4
	if len(block) < countSize {
		return 0
	}
	var digest uint64
	var pair [16]byte
	for rest := block[countSize:]; len(rest) >= lengthSize; {
		n := uint64(binary.BigEndian.Uint32(rest))
		rest = rest[lengthSize:]
		if n > uint64(len(rest)) {
			break
		}
		binary.BigEndian.PutUint64(pair[:8], n)
		record := crc64.Update(crc64.Checksum(pair[:8], xz), xz, rest[:n])
		rest = rest[n:]
		binary.BigEndian.PutUint64(pair[:8], digest)
		binary.BigEndian.PutUint64(pair[8:], record)
		digest = crc64.Checksum(pair[:], xz)
	}
	return digest
}
