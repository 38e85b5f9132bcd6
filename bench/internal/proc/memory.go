package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RSS is the resident set of a running process in bytes, read from procfs.
func RSS(pid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read resident set: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse VmRSS of %s: %w", path, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("%s has no VmRSS", path)
}
