package client

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/felixlog/felix/wire"
)

// refused makes an Error of a broker's refusal.
func refused(op, addr string, f wire.Failure) *Error {
	e := &Error{
		Op:      op,
		Code:    Code(f.Name),
		Retry:   RetryClass(f.Class),
		Message: f.Message,
		Reason:  f.Detail.Reason,
		Broker:  addr,
	}
	if f.Class == 0 {
		e.Retry = classOfText(f.Message)
	}
	const longest = 24 * time.Hour
	e.RetryAfter = time.Duration(min(f.Detail.RetryAfterMS, uint64(longest/time.Millisecond))) * time.Millisecond
	return e
}

// about is the same refusal for another request.
func (e *Error) about(op string, id uint64) *Error {
	c := *e
	c.Op, c.RequestID = op, id
	return &c
}

// classOfText is the class of a refusal without a code, from a broker that
// predates them: permissions stay refused, the rest may pass (wire 16.4,
// 20.2).
func classOfText(message string) RetryClass {
	if containsFold(message, "forbidden") || containsFold(message, "auth failed") {
		return RetryNever
	}
	return RetryNow
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), part)
}

// lost makes an Error of a request whose stream or connection failed.
func lost(op, addr string, class RetryClass, cause error) *Error {
	return &Error{Op: op, Retry: class, Broker: addr, Err: cause}
}

// errStreamEnded is an unannounced end of input.
var errStreamEnded = errors.New("the broker ended the stream")

// cause names why a stream failed: the client's own end before all, and an
// unannounced end of input in words.
func (c *Client) cause(err error) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errStreamEnded
	}
	return err
}

// ctxError is the end of a caller's context during an operation.
func ctxError(op string, ctx context.Context, class RetryClass) *Error {
	return &Error{Op: op, Retry: class, Err: context.Cause(ctx)}
}
