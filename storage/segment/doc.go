// Package segment is the format of a log on disk. This comment is its
// specification; the golden vectors in testdata hold it in place.
//
// # A log's directory
//
//	00000000000000000000.log     a segment; the name is its id in 20 digits
//	00000000000000000000.index   where to start reading in that segment
//	durable.mark                 what is known to have reached the device
//	epochs, replica, ballot      replication's state
//	identity                     whose log this is
//	producers                    idempotent producers (package producer)
//
// A segment's id is no offset. Ids grow from 0 and may skip; the base offset is
// in the file's header. All integers are big-endian, all checksums CRC-32C
// (Castagnoli) with the usual initial and final complement, as hash/crc32.
//
// # Segment
//
// A header of 64 bytes, then batches back to back until the end of the file.
// No padding, no footer: a file's size is what was written to it.
//
//	offset size  field
//	0      4     magic        0x464C5853 "FLXS"
//	4      2     version      1
//	6      2     flags        0
//	8      8     base_offset  offset of the first record, or the next one if none
//	16     8     created      micros since 1970, for people
//	24     4     prev_crc     header_crc of the last batch before this segment;
//	                          0 if the log has none
//	28     32    reserved     0
//	60     4     header_crc   of bytes 0 to 60
//
// An unknown version or flag, or a reserved byte that is not zero, is refused:
// a newer Felix wrote it, and nothing may be concluded about what follows.
//
// # Batch
//
// What one append wrote: a header of 80 bytes, the publisher, the record block,
// and what the kind adds to it (extra).
//
//	offset size  field
//	0      4     magic            0x464C5842 "FLXB"
//	4      4     header_crc       of bytes 8 to 80
//	8      4     prev_crc         header_crc of the batch before, the chain
//	12     4     body_crc         of publisher, block, extra
//	16     1     kind             0 records, 1 generation start, 2 commit
//	17     1     flags            bit 0: producer; others 0
//	18     1     publisher_len    0 to 255
//	19     1     reserved         0
//	20     4     count            records, at least 1
//	24     4     block_len        bytes
//	28     4     extra_len        bytes
//	32     8     base_offset      of the first record
//	40     8     generation       of the leader that wrote it
//	48     8     timestamp        micros since 1970, of the append
//	56     8     durable_through  records below this offset were known to be
//	                              durable when this was written
//	64     8     producer_id      0 without the flag
//	72     8     sequence         0 without the flag
//	80     ...   publisher, block, extra
//
// The block is the block of the protocol (wire 4.1), byte for byte:
//
//	u32 count
//	count x { u32 length, bytes }
//
// Its records have the offsets base_offset, base_offset + 1, ... Offsets are
// dense: a batch begins where the one before it ended, across segments too.
// Publisher, block and extra together are at most [MaxBody] bytes.
//
// Kinds: "records" is what a publisher sent. "Generation start" is the first
// thing a new leader writes: one record of 8 bytes, the generation as a u64;
// it has an offset but is delivered to nobody. "Commit" is one event, delivered
// like any other, and in extra the operations on the shard's state that become
// true with it.
//
// The chain: prev_crc is the header_crc of the batch before, in the same file
// or, for the first batch, the prev_crc of the file's header. header_crc covers
// body_crc and prev_crc and so all that came before. A batch that is whole but
// in the wrong place (a lost write, a file put back) breaks the chain.
//
// Two checksums, because they answer two questions. A header that verifies has
// a length that can be believed; if the file ends before it, the write was not
// finished. A header that does not verify says nothing.
//
// durable_through lets recovery tell a torn tail from rot: a batch that was
// durable when a later, valid one was written cannot be an unfinished write.
//
// # Index
//
// Never needed and never trusted: it can be rebuilt from its segment, byte for
// byte.
//
//	offset size  field
//	0      4     magic        0x464C5849 "FLXI"
//	4      2     version      1
//	6      2     flags        0
//	8      8     base_offset  as in the segment's header
//	16     8     reserved     0
//	24     ...   entries of { u64 offset, u64 position in the segment }
//
// The first batch has an entry; each other one has if at least the spacing, in
// bytes of batches, lies between its start and that of the last batch with an
// entry. Offsets and positions ascend strictly. Entries are appended without a
// sync, and synced when the segment is sealed. A missing file, a bad header,
// another base, a first entry that is not the first batch, or entries out of
// order: the index is unusable, and rebuilt. A last entry that is cut is
// ignored.
//
// # Side files
//
// "Replaced" is: written beside, synced, renamed, directory synced
// (fs.WriteDurable).
//
// durable.mark, 32 bytes, [Mark]: u32 "FLXM", u16 version 1, u16 0, u64 segment
// id, u64 synced bytes, u32 CRC of bytes 0 to 24, u32 0. All bytes of that
// segment below the number, and all segments before it, are on the device.
// Written in place after every flush and not synced for it, so it may lag and
// never leads: bytes missing below it were lost, not unfinished. Synced when
// the log is opened and closed. Truncation lowers and syncs it before it cuts.
// Missing or damaged: nothing is known; the strict rules of recovery hold.
//
// epochs, [Generations]: u32 "FLXE", u16 version 1, u16 count, u32 CRC of bytes
// 4 to 8 and of what follows, count x {u64 generation, u64 start offset}.
// Generations ascend strictly, starts do not descend; the newest 512 are kept.
// Replaced. Missing or damaged: empty; a divergence from a leader is then
// settled by a person or a rebuild.
//
// replica, 28 bytes, [Replica]: u32 "FLXR", u16 version 1, u16 flags (bit 0:
// retention stops at the commit offset), u64 generation, u64 commit offset, u32
// CRC of bytes 0 to 24. Replaced; a raised generation before the batch that
// raised it is stored or acknowledged. Missing: zeros. Damaged: the log is not
// opened, since a promise it made is unknown.
//
// ballot, [Ballot]: u32 "FLXL", u16 version 1, u16 leader_len (at most 1,024),
// u64 generation, leader in UTF-8, u32 CRC of all before. Replaced; before
// replica when a generation is raised. Missing: no leader named. Damaged: the
// log is not opened.
//
// identity, [Identity]: u32 "FLXD", u16 version 1, u16 0, u32 shard, 4 x {u16
// length, UTF-8} space, tenant, namespace, name (each at most 1,024 bytes), u32
// CRC of all before. Written once, before the first segment. Missing: written
// again. Damaged, or another shard's: the log is not opened.
//
// uid, [UID]: u32 "FLXU", u16 version 1, u16 0, u16 length (1 to 255), UTF-8,
// u32 CRC of all before. To which creation of the name the log belongs. Written
// once, before the first segment or when a log without one is adopted. Missing:
// nobody has said. Damaged, or another one: the log is not opened.
package segment
