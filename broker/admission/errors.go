package admission

import (
	"errors"
	"fmt"
	"time"
)

// A Reason is the machine word of an overload (broker 3.5).
type Reason string

const (
	// QueueFull: no slot in the publish queue.
	QueueFull Reason = "publish_queue_full"
	// BytesFull: a byte budget is used up.
	BytesFull Reason = "publish_bytes_full"
	// TenantQuota: the tenant publishes faster than it may.
	TenantQuota Reason = "tenant_quota"
)

// An OverloadedError refuses a publish of which nothing was kept. It may be
// repeated.
type OverloadedError struct {
	Reason Reason
	// RetryAfter is when a repetition may succeed; 0 makes no suggestion.
	RetryAfter time.Duration
}

func (e *OverloadedError) Error() string {
	text := "server overloaded"
	switch e.Reason {
	case QueueFull:
		text = "publish queue full"
	case BytesFull:
		text = "publish byte budget used up"
	case TenantQuota:
		text = "tenant publish quota exceeded"
	}
	if e.RetryAfter <= 0 {
		return text
	}
	ms := (e.RetryAfter + time.Millisecond - 1) / time.Millisecond
	return fmt.Sprintf("%s; retry in %d ms", text, ms)
}

// ErrConnectionClosed refuses a publish of a connection that has ended.
var ErrConnectionClosed = errors.New("connection closed")
