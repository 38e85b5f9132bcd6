//go:build race

package client

// raceEnabled: under the race detector sync.Pool drops items at random, so
// that allocations cannot be counted.
const raceEnabled = true
