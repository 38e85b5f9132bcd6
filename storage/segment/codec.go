package segment

import (
	"encoding/binary"
	"hash/crc32"
)

// FormatVersion is the version every file of this package carries.
const FormatVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// extend adds b to a checksum.
func extend(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// extendString adds s to a checksum, byte by byte: s is a short name, and
// turning it into bytes would cost an allocation.
func extendString(crc uint32, s string) uint32 {
	crc = ^crc
	for i := range len(s) {
		crc = castagnoli[byte(crc)^s[i]] ^ crc>>8
	}
	return ^crc
}

func appendU16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }
func appendU32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }
func appendU64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

func getU16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func getU32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func getU64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// allZero reports whether every byte is zero.
func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
