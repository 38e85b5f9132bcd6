//go:build !linux

package commitref

import "os"

func syncData(f *os.File) error { return f.Sync() }
