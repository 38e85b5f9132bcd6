// Package schedule runs publishes: in order within a lane, fairly between
// tenants, on a small fixed set of executors (broker 4).
//
// A lane is one shard's queue. It runs one job at a time, in arrival order. A
// publish first asks for a [Pass]: a lane that is free and empty is entered at
// once and the job runs on the caller's goroutine, which costs no hop; a busy
// one takes a slot of the bounded queue. Executors pick queued jobs by deficit
// round robin over the tenants, charged by payload bytes.
//
// A job that has to wait for something keeps its lane, not its executor: it
// returns [Held] and is continued on the goroutine that ends the wait.
package schedule
