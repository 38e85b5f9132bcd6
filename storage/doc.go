// Package storage keeps the logs of one broker under one directory and hands
// them out: one log a shard, opened when it is first asked for.
//
// # Layout
//
//	<root>/LOCK                       held by the process that has the store open
//	<root>/<shard>/                   streams
//	<root>/caches/<shard>/            caches
//	<root>/counters/<shard>/          counters
//	<root>/groups/<shard>/            positions of consumer groups, one log a stream shard
//	<root>/dead-letters/<shard>/      dead letters, one log a stream shard
//
// The name of a shard's directory is made from its key ([DirName]) and its file
// identity says which key that was, so that two keys can never share a log
// without anybody noticing. What is inside is described by the packages
// segment (the format), recovery (what opening does) and shardlog (an open
// log). Nothing walks the root at start: a shard nobody asks for costs nothing.
//
// A shard that cannot be opened is refused by itself; the others go on.
package storage
