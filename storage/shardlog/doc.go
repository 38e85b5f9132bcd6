// Package shardlog is one open log: the segments of one shard, appended to in
// rounds, read by position, kept as long as retention says.
//
// # The path of an append
//
// Append claims offsets and copies the batch, already encoded, into the buffer
// that is gathering; it never touches the disk in on_commit mode. A committer
// goroutine, started on demand and gone when idle, takes what has gathered,
// writes it with one WriteAt (one per segment when a roll falls in between),
// syncs it (on_commit), publishes the new tail and calls the completions in
// offset order. While it syncs the next round gathers; that is the whole of
// group commit, and there is no delay to tune.
//
// A write that fails is undone: the file is cut back, everything claimed and
// not yet written fails, and the offsets are given out anew. A sync that fails
// poisons the log for good, because the kernel may have dropped the pages and
// would report success the next time (storage 8.2).
//
// # Locks
//
// In this order, never the other way round:
//
//	admin  what removes segments: truncate, reset, trim, close
//	flush  one flush outside a round at a time
//	io     the token to write: a round, a roll, a cut
//	side   the small files of replication
//	mu     claims and the gathering round: memory only, no system call
//	list   the list of segments: pointer work only
//
// Readers take list for a moment and then read with positioned reads. What
// changes bytes under them counts a generation up, and they read again
// (storage 10).
package shardlog
