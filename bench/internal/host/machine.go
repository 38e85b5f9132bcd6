package host

import (
	"os"
	"runtime"
	"strings"

	"github.com/felixlog/felix/bench/internal/report"
)

// Describe says what machine this is, as far as it tells.
func Describe() report.Machine {
	return report.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		Kernel: firstLine("/proc/sys/kernel/osrelease"),
		CPU:    model("/proc/cpuinfo"),
	}
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // not a system that says
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func model(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // not a system that says
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
