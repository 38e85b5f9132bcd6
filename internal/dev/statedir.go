package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/felixlog/felix/storage/fs"
)

// dataDir is where, under the directory of a development broker, its data is.
const dataDir = "data"

// DataDir is where the development broker of a directory keeps its data.
func DataDir(dir string) string { return filepath.Join(dir, dataDir) }

// DefaultDir is where a development broker keeps its certificates, token and
// data:
// felix/dev under the user's state directory, which is $XDG_STATE_HOME or
// ~/.local/state.
func DefaultDir(getenv func(string) string) (string, error) {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "felix", "dev"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w", err)
	}
	return filepath.Join(home, ".local", "state", "felix", "dev"), nil
}

// lockFile is held by the server that has a state directory.
const lockFile = "LOCK"

// lockDir keeps a state directory for this process alone. In memory there is
// none. The error is a [*fs.LockedError] where another has it.
func lockDir(dir string) (unlock func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	held, err := fs.OS().Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { held.Close() }), nil
}
