package fs

import "io"

// FS is a file system. Names are paths in the form of the operating system.
// All methods are safe for concurrent use.
type FS interface {
	// Create makes a new file for reading and writing; [ErrExist] if the name
	// is taken.
	Create(name string) (File, error)
	// Open opens an existing file for reading; [ErrNotExist] if there is none.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing, its content
	// kept; [ErrNotExist] if there is none.
	OpenWrite(name string) (File, error)
	// Remove removes a file or an empty directory. Open files live on.
	Remove(name string) error
	// Rename gives a file a new name, in place of the one that had it.
	Rename(from, to string) error
	// Mkdir makes one directory; [ErrExist] if the name is taken.
	Mkdir(name string) error
	// List names what is in a directory, in no order.
	List(dir string) ([]string, error)
	// Stat describes a file or directory; [ErrNotExist] if there is none.
	Stat(name string) (Info, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Lock takes a lock for this process alone and keeps it until the result
	// is closed or the process dies. It does not wait: *[LockedError] if
	// another holds it. The file is made if missing, and left.
	Lock(name string) (io.Closer, error)
	// Free is the space left for this process under dir, in bytes.
	Free(dir string) (bytes uint64, err error)
}

// File is an open file. Reads and writes name their position, so one handle
// serves any number of readers. Methods are safe for concurrent use; after
// Close they fail.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable, not its name. After an
	// error nobody knows which of them are: the system may have dropped them,
	// and a second Sync that succeeds proves nothing.
	Sync() error
	// Truncate sets the size in bytes, and gives back blocks reserved past it.
	Truncate(size int64) error
	// Size is the size in bytes.
	Size() (int64, error)
	// Reserve sets blocks aside for the first size bytes without changing the
	// file's size; [ErrUnsupported] where that cannot be done.
	Reserve(size int64) error
}

// Info describes a file or directory.
type Info struct {
	Size int64 // in bytes; of no meaning for a directory
	Dir  bool
}
