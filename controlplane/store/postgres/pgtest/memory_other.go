//go:build !linux

package pgtest

import "os"

// memoryDirectory is that of temporary files.
func memoryDirectory() string { return os.TempDir() }
