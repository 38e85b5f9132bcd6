// Package producer remembers what idempotent producers have written to one
// shard (storage 15, wire 9.6), so that a batch sent twice is kept once.
//
// A producer numbers its batches on a shard from 0. The table knows, of each
// producer, the newest number and its latest batches: a number that comes again
// with the same payloads is answered with the offset it had. The table is a
// function of the batches in the log: replayed in order they give the same one
// everywhere, and its snapshot only saves that work.
//
// A batch enters the table when it gets its offsets and leaves it again if the
// write fails ([Table.Rewind]). For that the table keeps, unseen, one window of
// batches more than it answers for.
package producer
