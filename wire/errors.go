package wire

import (
	"errors"
	"fmt"
)

// Errors of the frame header (wire 3.2). After any of them but [ErrShort] the
// stream cannot continue.
var (
	// ErrShort says that fewer than [HeaderSize] bytes were given.
	ErrShort = errors.New("frame header incomplete")
	// ErrMagic says that the bytes do not start a Felix frame.
	ErrMagic = errors.New("bad frame magic")
	// ErrVersion says that the frame has another protocol version.
	ErrVersion = errors.New("unsupported protocol version")
)

// Kinds of decoding errors. The concrete type is [*FieldError]; each of them
// satisfies errors.Is with [ErrMalformed] too.
var (
	// ErrMalformed is every payload that cannot be decoded.
	ErrMalformed = errors.New("malformed payload")
	// ErrFlags is a frame whose flags are no legal combination, or not those
	// of the decoder asked (wire 3.4).
	ErrFlags = errors.New("illegal frame flags")
	// ErrMalformedPrefix is an acked publish whose correlation prefix cannot
	// be read: there is no request to answer (wire 4.2, 19).
	ErrMalformedPrefix = errors.New("malformed publish prefix")
	// ErrMalformedBody is a publish whose correlation prefix, if it has one,
	// was read, and whose rest is malformed (wire 4.2, 19).
	ErrMalformedBody = errors.New("malformed publish batch")
)

// A FieldError says which field of which message could not be decoded, and why.
type FieldError struct {
	// Message is the JSON type, or the binary layout such as "publish batch".
	Message string
	// Field is the field's name in the specification; empty when the
	// message as a whole is at fault.
	Field string
	// Problem is a short phrase, such as "missing" or "not an unsigned integer".
	Problem string

	kind error
}

func (e *FieldError) Error() string {
	switch {
	case e.Message == "":
		return "malformed message: " + e.Problem
	case e.Field == "":
		return fmt.Sprintf("malformed %s: %s", e.Message, e.Problem)
	}
	return fmt.Sprintf("malformed %s: field %s: %s", e.Message, e.Field, e.Problem)
}

// Is makes every FieldError an [ErrMalformed].
func (e *FieldError) Is(target error) bool { return target == ErrMalformed }

// Unwrap is the kind of error: one of the sentinels above.
func (e *FieldError) Unwrap() error { return e.kind }

// A TooLargeError is a header that declares more than its reader accepts
// (wire 3.2 rule 3). None of the payload is read and the stream cannot continue.
type TooLargeError struct {
	Declared uint32 // payload bytes the header declares
	Max      int    // payload bytes accepted
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("frame payload of %d bytes, at most %d accepted", e.Declared, e.Max)
}
