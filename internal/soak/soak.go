// Package soak says how large the campaigns of the tests are.
package soak

import (
	"os"
	"strconv"
)

// Times is how many times its usual size a campaign has: SOAK in the
// environment, 1 where it is not set.
func Times() int {
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}
