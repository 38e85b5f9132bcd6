package pgtest

import (
	"os"
	"syscall"
)

// memoryDirectory is /dev/shm where it has room, else that of temporary files.
func memoryDirectory() string {
	const shm = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(shm, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= memoryNeeded {
		return shm
	}
	return os.TempDir()
}
