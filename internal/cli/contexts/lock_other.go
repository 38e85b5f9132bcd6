//go:build !unix

package contexts

import "io/fs"

// Lock does nothing where advisory file locks are not at hand: the last of
// two updates at once wins, and the file is whole either way.
func Lock(string) (unlock func(), err error) { return func() {}, nil }

// exposed is not told by mode bits here.
func exposed(fs.FileMode) bool { return false }
