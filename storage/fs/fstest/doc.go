// Package fstest holds file systems for tests of whatever is built on package
// fs: [Mem], in memory, which dies and loses power on request, and [Faults], a
// wrapper that fails, delays and counts operations.
//
// # The power-loss model
//
// [Mem.Crash] returns one of the disks a machine may find after its power
// failed; the seed chooses which. The model promises exactly what package fs
// does, and is unkind otherwise:
//
//   - A file's bytes and size are what they were at its last Sync, except
//     where they changed since. A 512-byte sector that changed holds what it
//     held at the Sync, or what was written last, or what it held at a moment in
//     between when the system happened to write it back. Each 4 KiB page goes
//     one way as a whole, or each of its sectors its own. A sector past the
//     synced size may also be zeros.
//   - A size that changed since the Sync is the old one, the new one, or any in
//     the range it passed through.
//   - Names created, renamed and removed since their directory's SyncDir are
//     each done or not, whatever became of those before and after. A rename
//     within a directory is done as a whole; one across directories may leave
//     the file under both names, or none.
//   - A file whose name was made durable may thus be empty, and one that was
//     synced may be unreachable.
//
// [Mem.Kill] returns what a process that died leaves to the next one: all that
// was written. After either, the old file system and its open files fail with
// [ErrDead], so that whatever still runs cannot touch the new one.
package fstest
