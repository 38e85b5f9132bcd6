package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// felixCommand is the package of the binary under test.
const felixCommand = "github.com/felixlog/felix/cmd/felix"

// buildFelix builds the felix binary of the module this runs in.
func buildFelix(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "felix")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, felixCommand)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build felix: %w\n%s", err, out)
	}
	return path, nil
}
