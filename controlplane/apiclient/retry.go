package apiclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// A Retry says how a call is repeated. Calls that change something, and would
// change it again, are repeated only where they were certainly not carried out.
type Retry struct {
	// Attempts is how often a call is made at most, over all base URLs; 0 means
	// once each.
	Attempts int
	// Base is the longest first pause, which doubles up to Max; a pause is
	// drawn between half of that and all of it. It is made when every base URL
	// was asked. Zero means 100 ms and 5 s.
	Base, Max time.Duration
	// Random gives the jitter, from 0 up to n; nil draws it.
	Random func(n int64) int64
}

func (r Retry) withDefaults() Retry {
	if r.Base <= 0 {
		r.Base = 100 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = 5 * time.Second
	}
	if r.Random == nil {
		r.Random = rand.Int64N
	}
	return r
}

// pause before round n, from 1 on. What the other side asked for is a lower
// bound, within Max.
func (r Retry) pause(n int, asked time.Duration) time.Duration {
	d := r.Base
	for ; n > 1 && d < r.Max; n-- {
		d *= 2
	}
	d = min(d, r.Max)
	d = d/2 + time.Duration(r.Random(int64(d/2)+1))
	return min(max(d, asked), max(r.Max, d))
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// repeatable says whether a failed attempt may be made again, and elsewhere.
func repeatable(err error, idempotent bool) bool {
	var refused *Error
	if errors.As(err, &refused) {
		switch {
		case refused.Status == http.StatusTooManyRequests, refused.Code == CodeCannotVerify:
			return true // refused before anything was done
		case refused.Status == http.StatusServiceUnavailable, refused.Status == http.StatusBadGateway, refused.Status == http.StatusGatewayTimeout:
			return idempotent
		}
		return false
	}
	var answer *AnswerError
	if errors.As(err, &answer) {
		return idempotent
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return idempotent
}

func retryAfter(err error) time.Duration {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}
