// Package journal is the commit stream that the logs of one store share: what
// several logs want on the device at the same time gets there with one sync.
//
// A log writes its round to its own file first, as always. Then, instead of
// syncing that file, it hands the same bytes to the journal, which gathers what
// all logs hand over, writes it to a file of its own in one call and syncs that.
// The log's file is synced later, before the journal's copy is overwritten. So
// the journal is never read except after a crash, and a log that cannot use it,
// for whatever reason, syncs its own file: the journal saves time and promises
// nothing on its own.
//
// # Files
//
// Two files, 0.journal and 1.journal, take turns. One fills up; then the other
// is written from its beginning, over what it held a turn ago, while the logs
// that have rounds in the full one sync their files. A file is written over only
// when all of them have; until then logs sync for themselves. Writing over old
// bytes is what makes the sync cheap: neither size nor blocks change.
//
// # Format
//
// Integers are big-endian. A file is a sequence of rounds, each at a multiple of
// 4,096 bytes:
//
//	 0  magic    u32   "FLXR"
//	 4  crc      u32   CRC-32C of bytes 8 to 32 and of the body
//	 8  epoch    u64   turn of the file; rises by one from file to file
//	16  number   u64   of the round; rises by one from round to round
//	24  length   u32   of the body, in bytes
//	28  entries  u32
//	32  body
//
// An entry is
//
//	name length u16 · segment u64 · position u64 · length u32 · name · bytes
//
// where the name is the log's directory, relative to the store's root.
//
// Before a file is written over, the header at its beginning is zeroed and
// synced, so that its first round, when torn, is told from a damaged one.
//
// The file voids names logs whose rounds up to a number no longer hold: those
// logs have synced their files and cut them since. It is
//
//	magic u32 "FLXV" · crc u32 of the rest · count u32 · count x (number u64 · name length u16 · name)
//
// and is replaced whole (a copy, synced, renamed). Missing means none; one that
// does not verify is damage.
//
// # Recovery
//
// [Open] reads every round there is in both files, those left from earlier turns
// included: what they hold is where it belongs already, unless a void names it.
// It writes their bytes there, in the order of their numbers, syncs the files it
// wrote to, and empties the journal. A segment that is gone was trimmed, and is
// passed over.
//
// A round is written only after the one before it is on the device. So within
// the last two epochs the numbers follow each other without a gap, from the
// beginning of a file on; where they do not, a round was damaged after it was
// written: [*DamagedError], and nothing is changed.
package journal
