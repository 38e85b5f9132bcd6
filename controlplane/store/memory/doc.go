// Package memory holds what the control plane knows as a deterministic state
// machine, the store over it, and the backend that keeps it in memory only.
//
//   - A [State] is the data. It changes by [Command]s alone: two states that
//     applied the same commands are equal, byte for byte (control plane 12.1).
//   - A [Machine] is a [store.Store] over a state: it reads under a lock and
//     writes through a [Proposer], which is a Raft log or nothing at all.
//   - A [Store] is the backend without a log (control plane 13).
//
// A record in a state never changes in place: a write puts a new one. So what a
// reader found under the lock may be copied, sorted or encoded outside of it.
//
// A write goes from a method of the machine (machine_*.go) as a command
// (command.go) to its operation (operations.go), which is a method of the state.
package memory
