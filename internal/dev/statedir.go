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
