// Package house holds the tests that keep the layout of the project: which
// room may import which, and what a core package may not touch.
package house
