package tracker

import "fmt"

// A StaleError refuses a settle or an extension whose claim no longer stands
// (wire 12.2: stale_claim). Nothing changed.
type StaleError struct {
	Offset uint64
	// Retry: the record was not handed out yet, but may have been before the
	// claims were last rebuilt; it will be delivered, and can be settled then.
	// Without Retry a repetition is refused again.
	Retry  bool
	Detail string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("stale claim on offset %d: %s", e.Offset, e.Detail)
}

// An InvalidError refuses a settle of an offset that cannot be settled (wire
// 12.2: invalid_request). Nothing changed.
type InvalidError struct {
	Offset uint64
	Detail string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("offset %d: %s", e.Offset, e.Detail)
}
