package keyed

import "fmt"

// A Reason says why a part cannot be used.
type Reason uint8

const (
	// Opening: its log is being read; the same request succeeds soon.
	Opening Reason = iota + 1
	// Failed: its log cannot be opened.
	Failed
	// NoStorage: there is nowhere to open a log.
	NoStorage
)

func (r Reason) String() string {
	switch r {
	case Opening:
		return "opening"
	case Failed:
		return "failed"
	case NoStorage:
		return "no storage"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
