package session

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/shardlog"
	"github.com/felixlog/felix/wire"
)

// Every error that groups and their logs know becomes a code and a class that a
// client can act on (wire 16).
func TestGroupErrorsAreWorded(t *testing.T) {
	for _, tc := range []struct {
		err    error
		code   wire.Code
		class  wire.RetryClass
		reason string
	}{
		{&tracker.StaleError{Offset: 1, Retry: true, Detail: "not yet"}, wire.CodeStaleClaim, wire.Retry, ""},
		{&tracker.StaleError{Offset: 1, Detail: "lapsed"}, wire.CodeStaleClaim, wire.Fatal, ""},
		{&tracker.InvalidError{Offset: 1, Detail: "never handed out"}, wire.CodeInvalidRequest, wire.Fatal, ""},
		{&queue.NameError{Name: "a\x1fb"}, wire.CodeInvalidRequest, wire.Fatal, ""},
		{&queue.NotListedError{Group: "g", Offset: 1}, wire.CodeNotFound, wire.Fatal, ""},
		{&queue.GroupLimitError{Limit: 9}, wire.CodeOverloaded, wire.RetryAfter, reasonGroups},
		{&queue.UnavailableError{Shard: "t/n/s/0", Reason: queue.Opening}, wire.CodeShardUnavailable, wire.Retry, reasonNotReady},
		{&queue.UnavailableError{Shard: "t/n/s/0", Reason: queue.Failed, Err: errors.New("damaged")}, wire.CodeShardUnavailable, wire.Retry, reasonFailed},
		{&queue.EndsEarlyError{Offset: 1}, wire.CodeShardUnavailable, wire.Retry, reasonFailed},
		{queue.ErrClosed, wire.CodeDraining, wire.Retry, ""},
		{stream.ErrRemoved, wire.CodeNotFound, wire.RetryAfter, ""},
		{context.DeadlineExceeded, wire.CodeShardUnavailable, wire.Retry, reasonNotReady},
		{shardlog.ErrBusy, wire.CodeOverloaded, wire.RetryAfter, ""},
		{&shardlog.FullError{}, wire.CodeOverloaded, wire.RetryAfter, reasonStorageFull},
		{&shardlog.SyncFailedError{Unknown: true}, wire.CodeStorage, wire.OutcomeUnknown, ""},
		{&shardlog.SyncFailedError{}, wire.CodeShardUnavailable, wire.Retry, reasonFailed},
		{errors.New("nobody foresaw it"), wire.CodeInternal, wire.OutcomeUnknown, ""},
	} {
		r := asGroupRefusal(fmt.Errorf("wrapped: %w", tc.err))
		if r.Code != tc.code || r.Class != tc.class || r.Detail.Reason != tc.reason || r.Message == "" {
			t.Errorf("%v: %+v, want %v, %v, %q", tc.err, r.Failure, tc.code, tc.class, tc.reason)
		}
		want := tc.class
		if want == wire.OutcomeUnknown {
			want = wire.Retry
		}
		if again := asGroupRefusal(retried(tc.err)); again.Class != want {
			t.Errorf("%v of a request that changes nothing: class %v, want %v", tc.err, again.Class, want)
		}
	}
}
