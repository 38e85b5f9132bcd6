package placement

// Policy is what an operator decides about placement. Times are milliseconds.
type Policy struct {
	// MoveLimit is the most copies at once in the cluster; 0 starts none.
	MoveLimit int
	// PerNode is the most copies at once that a node ships or receives; 0 is no
	// bound.
	PerNode int
	// FenceLag is how many records a copy may be behind and count as level.
	FenceLag uint64
	// MoveTimeoutMillis ends a copy that is not level by then; 0 is never.
	MoveTimeoutMillis uint64
	// SettleMillis is how long after its first registration a cluster waits for
	// as many brokers as a new shard has copies; 0 is not at all.
	SettleMillis uint64
	// RestoreAfterMillis is how long a follower is gone before another node gets
	// its copy; 0 is for ever, and shards that are short of copies stay short.
	RestoreAfterMillis uint64
}
