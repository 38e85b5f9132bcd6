package placed

import "fmt"

// A Reason says why a shard is not served here.
type Reason string

const (
	// NotAssigned: another broker serves it, or none.
	NotAssigned Reason = "not_assigned"
	// Moving: it was taken away from this broker just now.
	Moving Reason = "moving"
	// Unreplicated: it is to be kept in more copies than this broker can.
	Unreplicated Reason = "unreplicated"
)

// A Shard names a shard of a stream or a cache.
type Shard struct {
	// Kind is the word for what has the shard: stream or cache.
	Kind                    string
	Tenant, Namespace, Name string
	Index                   uint32
}

func (s Shard) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", s.Tenant, s.Namespace, s.Name, s.Index)
}

// A NotServedError refuses a request to a shard that is not served here, and
// ends what was going on there. Nothing was kept of a request so refused.
type NotServedError struct {
	Shard  Shard
	Reason Reason
	// Generation is that of the newest order about the shard, 0 without one.
	Generation uint64
	// Detail says more, for a person; it may be empty.
	Detail string
}

func (e *NotServedError) Error() string {
	text := fmt.Sprintf("shard %s of a %s is not served here: %s", e.Shard, e.Shard.Kind, e.Reason)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// NotReplicated is the refusal of a shard that is to be kept in several copies.
func NotReplicated(shard Shard, copies uint32, generation uint64) *NotServedError {
	return &NotServedError{
		Shard: shard, Reason: Unreplicated, Generation: generation,
		Detail: fmt.Sprintf("it asks for %d copies, and this broker keeps one; ask for one copy, or run brokers that replicate", copies),
	}
}
