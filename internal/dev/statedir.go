package dev

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultDir is where a development broker keeps its certificates and token:
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

// replaceFile puts data in place of the file called name: a reader sees the
// old content or the new, and nobody but the owner sees either.
func replaceFile(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
