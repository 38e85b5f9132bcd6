package cli

import (
	"testing"
	"time"
)

// waitFor polls until something is so, and fails when it does not become so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
