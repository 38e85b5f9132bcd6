// Package kvlog keeps the latest value of every key over one log: caches
// ([Map]) and counters ([Counters]).
//
// The log is the data. An index in memory says for each key where its defining
// record lies; it holds no values, and a get is one lookup and one positioned
// read. The index is rebuilt from the log at open, or from a snapshot of it
// that verifies against the log, plus what was written since.
//
// # Cache record, format 1, little-endian (storage 16.2)
//
//	off  size  field
//	0    1     version: 1, or 2 = carries its entry version
//	1    1     op: 0 put, 1 delete, 2 expired
//	2    8     expires_at, Unix ms, 0 = never
//	10   4     key_len, 1 to 65,535
//	14   8     entry version (version 2 only)
//	     k     key, UTF-8
//	     rest  value (put only)
//
// Version 2 is a put that compaction copied: it restates a value under the
// entry version it has, the offset of the put that wrote it. Delete and expired
// are of version 1, without expiry and value; expired is the removal of a
// lapsed entry.
//
// # Counter record, format 1, little-endian (storage 17)
//
//	0  1  version: 1
//	1  1  op: 0 delta, 1 checkpoint
//	2  8  value, signed
//	10 4  key_len, 1 to 65,535
//	14 k  key, UTF-8
//
// A delta adds to the sum, a checkpoint replaces it. The length matches exactly.
//
// # Key index, file keys.idx, format 1, big-endian (storage 16.5)
//
//	header, 16 bytes
//	0  4  magic "FXIX"
//	4  2  format: 1
//	6  1  kind: 0 cache, 1 counters
//	7  1  zero
//	8  8  covered_through: replay starts here; no entry is at or past it
//	entries
//	0  4  key_len
//	4  8  offset of the defining record
//	12 8  entry version, or the counter's sum
//	20 8  expires_at, Unix ms, 0 = never
//	28 8  segment id
//	36 8  position of the batch in the segment; of a counter, whose value is
//	      not read from the log, the offset of the newest record in the sum
//	44 4  length of the batch
//	48 k  key
//	trailer, 24 bytes
//	0  8  entry count
//	8  8  checked_through: the log reaches at least to here
//	16 4  header CRC of the batch that ends there, 0 if the log begins there
//	20 4  CRC-32C of everything before
//
// The snapshot is taken while writers go on: an entry overwritten or removed
// meanwhile is missing, and the record that did so lies in
// [covered_through, checked_through), which replay reads. That is why the log
// must be proven unchanged up to checked_through; a batch's CRC covers the CRC
// of the batch before it, so one comparison proves it all.
//
// # The path of a write
//
// Write judges its condition against what will be there once everything staged
// has committed, appends, and returns. The log commits in groups and then calls
// back in offset order: the index takes the change, the Observer hears of it,
// the writer is answered. A write may rest on one that is not committed yet,
// because the log fails everything behind a failed write; a refusal that rests
// on one is answered when that one is committed.
//
// # Compaction
//
// One pass rolls the log, copies what still lives below the cut to the tail,
// flushes, drops the segments below the cut and writes the key index (storage
// 16.6). It runs on a goroutine of its own; writers meet it only at the short
// lock that orders appends.
package kvlog
