// Package placed is what streams and caches have in common where the control
// plane decides which broker serves which of their shards: the orders a broker
// was given, how a shard stands, and the refusal of what is not served here
// (control plane 6.6).
package placed
