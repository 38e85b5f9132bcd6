package wire

// An AckMode is what a publisher wants to hear (wire 9.1). Its number is the
// byte of the binary prefix.
type AckMode uint8

// The ack modes. Both acked modes give one answer per request.
const (
	AckNone       AckMode = 0 // no answer of any kind; JSON only
	AckPerMessage AckMode = 1
	AckPerBatch   AckMode = 2
)

func (m AckMode) String() string {
	switch m {
	case AckNone:
		return "none"
	case AckPerMessage:
		return "per_message"
	case AckPerBatch:
		return "per_batch"
	}
	return "invalid"
}

func ackModeByName(name string) (AckMode, bool) {
	for _, m := range []AckMode{AckNone, AckPerMessage, AckPerBatch} {
		if m.String() == name {
			return m, true
		}
	}
	return 0, false
}
