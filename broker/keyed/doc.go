// Package keyed opens the logs that hold the latest of each key, as what is
// built on them needs it: in the background, at most a few read at once, tried
// again where that may help, used through an atomic pointer, and closed once.
package keyed
