// Package controlplane is a broker's side of the control plane (control plane 5,
// 6, 18): it keeps the broker's catalog and shards as the control plane says,
// makes the broker a member of the cluster, knows where everything is served,
// and has the keys that verify clients' tokens.
//
// A broker serves from what it knows. Without the control plane nothing changes
// and nothing stops; a broker that starts meanwhile serves from what it knew.
package controlplane
