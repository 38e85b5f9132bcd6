package client

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func TestErrorTexts(t *testing.T) {
	cases := []struct {
		err  error
		want string
	}{
		{&Error{Op: "publish", Code: CodeOverloaded, Retry: RetryLater, Reason: "publish_queue_full", RetryAfter: 10 * time.Millisecond, Message: "publish queue full"},
			"publish: publish queue full (overloaded, publish_queue_full, retry after 10ms)"},
		{&Error{Op: "publish", Retry: RetryUnknown, Err: io.ErrUnexpectedEOF}, "publish: unexpected EOF (outcome unknown)"},
		{&Error{Code: CodeForbidden}, "forbidden (forbidden)"},
		{&Error{}, "failed"},
		{&UnsupportedError{Feature: "COUNTERS", Broker: "h:1"}, "broker h:1 does not support COUNTERS"},
		{&UnreachableError{Endpoints: []string{"a:1", "b:2"}, Err: io.EOF}, "no broker reachable at a:1, b:2: EOF"},
		{&CursorError{Reason: "too_old", Requested: 3, Available: 9}, "offset 3 is no longer held, the oldest is 9"},
		{&CursorError{Reason: "in_future", Requested: 30, Available: 9}, "offset 30 is past the end, the next record will be 9"},
		{&SubscriptionLostError{Shard: 2, Next: 7, HasNext: true, Err: io.EOF}, "subscription to shard 2 lost before offset 7: EOF"},
		{&SubscriptionLostError{Shard: 2, Err: io.EOF}, "subscription to shard 2 lost at an unknown position: EOF"},
		{&NameError{Kind: "stream", Name: "a/b", Err: errors.New("contains '/'")}, `invalid stream "a/b": contains '/'`},
	}
	for _, tc := range cases {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("%T reads %q, want %q", tc.err, got, tc.want)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	all := []error{ErrUnauthenticated, ErrForbidden, ErrNotFound, ErrInvalidRequest, ErrShardUnavailable, ErrOverloaded, ErrLimitExceeded, ErrOutcomeUnknown, ErrUnsupported, ErrClosed, ErrEnded}
	cases := []struct {
		err error
		is  error
	}{
		{&Error{Code: CodeForbidden, Retry: RetryNever}, ErrForbidden},
		{&Error{Code: CodeNotFound, Retry: RetryLater}, ErrNotFound},
		{&Error{Retry: RetryUnknown}, ErrOutcomeUnknown},
		{&UnsupportedError{}, ErrUnsupported},
		{&Error{Code: "code_99", Retry: RetryNever}, nil},
		{context.Canceled, nil},
	}
	for _, tc := range cases {
		for _, sentinel := range all {
			if got := errors.Is(tc.err, sentinel); got != (sentinel == tc.is) {
				t.Errorf("%v is %v: %v", tc.err, sentinel, got)
			}
		}
	}
	for class, want := range map[RetryClass]bool{RetryUnspecified: false, RetryNow: true, RetryLater: true, RetryElsewhere: true, RetryUnknown: false, RetryNever: false} {
		if IsRetryable(&Error{Retry: class}) != want {
			t.Errorf("class %v retryable: %v", class, !want)
		}
	}
	e := &Error{Op: "publish", Retry: RetryUnknown, Err: ErrClosed}
	if !errors.Is(e, ErrClosed) || !errors.Is(e, ErrOutcomeUnknown) {
		t.Error("the cause of an unknown outcome is hidden")
	}
}

// TestClassesMatchTheWire: the numbers and names of the classes are those of
// the protocol.
func TestClassesMatchTheWire(t *testing.T) {
	for _, class := range []wire.RetryClass{wire.Retry, wire.RetryAfter, wire.Redirect, wire.OutcomeUnknown, wire.Fatal} {
		if got := RetryClass(class).String(); got != class.String() {
			t.Errorf("class %d is %q here and %q on the wire", class, got, class)
		}
	}
	for _, mode := range []wire.AckMode{wire.AckNone, wire.AckPerMessage, wire.AckPerBatch} {
		if got := AckMode(mode).String(); got != mode.String() {
			t.Errorf("mode %d is %q here and %q on the wire", mode, got, mode)
		}
	}
	codes := []Code{CodeUnauthenticated, CodeForbidden, CodeNotFound, CodeInvalidRequest, CodeShardUnavailable, CodeNotLeader, CodeQuorumTimeout, CodeLeadershipLost,
		CodeUnacknowledged, CodeOverloaded, CodeLimitExceeded, CodeDraining, CodeInternal, CodeStorage, CodeStaleClaim}
	for i, code := range codes {
		if want := wire.Code(i + 1).String(); string(code) != want {
			t.Errorf("code %d is %q, on the wire %q", i+1, code, want)
		}
	}
	for _, r := range []Routing{Modulo, JumpHash} {
		if w, ok := wire.RoutingByName(string(r)); !ok || w.String() != string(r) {
			t.Errorf("routing %q is not on the wire", r)
		}
	}
}

func TestRefusalWithoutACode(t *testing.T) {
	for message, want := range map[string]RetryClass{"FORBIDDEN for you": RetryNever, "auth failed": RetryNever, "something broke": RetryNow} {
		if got := refused("publish", "h:1", (&wire.Error{Message: message}).Failure()); got.Retry != want || got.Code != "" {
			t.Errorf("%q has class %v, want %v", message, got.Retry, want)
		}
	}
	m := &wire.Error{Message: "m", ErrorInfo: wire.ErrorInfo{
		Code: wire.Some("brand_new"), Retry: wire.Some("retry_after"), Detail: wire.Some(wire.Detail{Reason: "r", RetryAfterMS: ^uint64(0)}),
	}}
	e := refused("publish", "h:1", m.Failure())
	if e.Code != "brand_new" || e.Retry != RetryLater || e.Reason != "r" || e.RetryAfter <= 0 || e.RetryAfter > 24*time.Hour {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(e.Error(), "brand_new") {
		t.Errorf("text %q", e)
	}
}
