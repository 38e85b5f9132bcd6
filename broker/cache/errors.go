package cache

import (
	"errors"
	"fmt"
)

// ErrRemoved is the answer of a handle whose cache was removed, also after a
// cache of the same name was registered again: resolve the name once more.
var ErrRemoved = errors.New("cache removed")

// An InvalidTTLError refuses a time to live of zero, or one that ends past
// what an expiry can express. The key is unchanged.
type InvalidTTLError struct {
	Millis uint64
}

func (e *InvalidTTLError) Error() string {
	if e.Millis == 0 {
		return "ttl of 0 ms: leave the ttl out to keep the entry, delete it to end it"
	}
	return fmt.Sprintf("ttl of %d ms ends past the largest time that can be kept", e.Millis)
}

// A TooLargeError refuses an entry that is larger than the whole cache may be.
// The key is unchanged.
type TooLargeError struct {
	// Size is the entry's cost and Limit the broker's bound, in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("cache entry of %d bytes exceeds the broker's limit of %d", e.Size, e.Limit)
}
