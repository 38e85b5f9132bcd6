package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// notFoundFor is how long "not found" is retried: a broker may just not have
// heard yet of something new (wire 16.2, 20.2).
const notFoundFor = 5 * time.Second

// wait is the time to wait before the attempt after the n-th failed one:
// uniform below a ceiling that doubles.
func (p ReconnectPolicy) wait(n int) time.Duration {
	ceiling := float64(p.Initial) * math.Pow(2, float64(n-1))
	ceiling = min(ceiling, float64(p.Max))
	return time.Duration(p.Random() * ceiling)
}

// retry calls f until it succeeds, fails for good, or the attempts of the
// reconnect policy are used up. repeatable says that f may be called again
// even when its outcome is unknown: it only reads.
func (c *Client) retry(ctx context.Context, repeatable bool, f func(context.Context) error) error {
	var failed time.Time // first
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		wait, again := c.again(err, attempt, repeatable, time.Since(failed))
		if !again || ctx.Err() != nil {
			return c.closedOr(err)
		}
		if ended := c.sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w; the last attempt: %w", ended, err)
		}
	}
}

// within bounds ctx by d; the cause of its end then says so, and is no
// context error.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %v", d))
}

// again decides whether a request that failed for the attempt-th time is
// tried again, and after which wait.
func (c *Client) again(err error, attempt int, repeatable bool, since time.Duration) (time.Duration, bool) {
	if attempt >= c.cfg.reconnect.Attempts || c.ctx.Err() != nil {
		return 0, false
	}
	wait := c.cfg.reconnect.wait(attempt)
	var (
		unreachable *UnreachableError
		e           *Error
	)
	switch {
	case errors.As(err, &unreachable):
		return wait, !unreachable.permanent
	case !errors.As(err, &e), isContext(err):
		return 0, false
	case e.Code == CodeNotFound && since > notFoundFor:
		return 0, false
	case e.Retryable(), e.OutcomeUnknown() && repeatable:
		return max(wait, e.RetryAfter), true
	}
	return 0, false
}

// sleep waits, or ends with ctx or the client.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}
