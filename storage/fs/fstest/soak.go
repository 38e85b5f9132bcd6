package fstest

import (
	"os"
	"strconv"
)

// Soak is how many times longer than usual campaigns run: SOAK in the
// environment, 1 where it is not set.
func Soak() int {
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}
