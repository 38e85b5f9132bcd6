package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on every Linux port of Go.
const tick = 10 * time.Millisecond

// read reads the CPU time the whole machine has spent busy, and this process.
func read() (machine, own time.Duration, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read machine load: %w", err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	machine, err = busy(first)
	if err != nil {
		return 0, 0, err
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0, os.NewSyscallError("getrusage", err)
	}
	return machine, time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), nil
}

// busy adds the columns of the first line of /proc/stat that are not idle:
// user, nice, system, irq, softirq, steal. The guest columns after them are
// part of user and nice.
func busy(line string) (time.Duration, error) {
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("first line of /proc/stat is %q", line)
	}
	var sum time.Duration
	for _, column := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(f[column], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("column %d of /proc/stat: %w", column, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
