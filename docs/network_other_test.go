//go:build !linux

package docs_test

// inOwnNetwork calls run as it is: only Linux gives processes a network of their
// own.
func inOwnNetwork(run func() error) error { return run() }
