// Package fs is the file system as the log needs it: a small interface, its
// implementation over the operating system ([OS]), and the few durable
// sequences every caller would otherwise write by hand.
//
// Durability is always asked for by name. [File.Sync] makes a file's bytes and
// size durable, [FS.SyncDir] the names in a directory; nothing else does. A
// name created, renamed or removed before a crash may or may not be there
// after it unless its directory was synced since.
//
// Package fstest, beside this one, holds a file system in memory that loses
// power on request, and a wrapper that injects faults.
package fs
