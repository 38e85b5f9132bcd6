package rawquic

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/felixlog/felix/bench/internal/coalesce"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/transport"
)

// An EchoSpec is a run of requests and replies on one stream.
type EchoSpec struct {
	Addr     string         `json:"addr"`
	TLS      pki.Files      `json:"tls"`
	Poll     time.Duration  `json:"poll_ns"`
	Phases   measure.Phases `json:"phases"`
	InFlight int            `json:"in_flight"`
	// Request and Reply are the sizes of the whole frames, Bytes the payload
	// that a figure in bytes counts for one exchange.
	Request int `json:"request"`
	Reply   int `json:"reply"`
	Bytes   int `json:"bytes"`
}

// Echo keeps requests in flight and times each.
func Echo(ctx context.Context, spec EchoSpec) (measure.Result, error) {
	c, err := dial(ctx, spec.TLS, spec.Addr, spec.Poll, 1)
	if err != nil {
		return measure.Result{}, fmt.Errorf("dial: %w", err)
	}
	defer c.close()
	st, err := c.conns[0].OpenStream(ctx)
	if err != nil {
		return measure.Result{}, fmt.Errorf("open stream: %w", err)
	}
	defer st.CancelRead(0)
	defer st.CancelWrite(0)
	stop := context.AfterFunc(ctx, func() { st.CancelRead(0); st.CancelWrite(0) })
	defer stop()
	if _, err := st.Write([]byte{kindEcho}); err != nil {
		return measure.Result{}, fmt.Errorf("write: %w", err)
	}
	var r measure.Result
	if spec.InFlight == 1 {
		r, err = lone(ctx, st, spec)
	} else {
		r, err = pipelined(ctx, st, spec)
	}
	if err != nil {
		return measure.Result{}, err
	}
	c.note(&r)
	return r, nil
}

// lone writes and reads on one goroutine, with no hand-off at all.
func lone(ctx context.Context, st transport.Stream, spec EchoSpec) (measure.Result, error) {
	request := appendRequest(nil, 0, spec.Request, spec.Reply)
	reply := make([]byte, max(spec.Reply, minReply))
	return measure.ClosedLoop(ctx, spec.Phases, 1, spec.Bytes, func(context.Context, int) error {
		if _, err := st.Write(request); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if _, err := io.ReadFull(st, reply); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		return nil
	})
}

// pipelined has one worker for each request in flight. Requests made while
// another is being written leave together in the next write, and one reader
// hands the replies out: the shape of Felix's client.
func pipelined(ctx context.Context, st transport.Stream, spec EchoSpec) (measure.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	replies := make([]chan struct{}, spec.InFlight)
	requests := make([][]byte, spec.InFlight)
	for i := range replies {
		replies[i] = make(chan struct{}, 1)
		requests[i] = appendRequest(nil, uint32(i), spec.Request, spec.Reply)
	}
	go func() {
		cut := cutter{buf: make([]byte, readBuffer)}
		for {
			_, err := cut.read(st, func(payload []byte) {
				if slot := slotOf(payload); int(slot) < len(replies) {
					replies[slot] <- struct{}{}
				}
			})
			if err != nil {
				cancel(fmt.Errorf("read: %w", err))
				return
			}
		}
	}()
	w := coalesce.Writer{W: st, Try: st.TryWrite}
	return measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.Bytes, func(ctx context.Context, worker int) error {
		if err := w.Write(requests[worker], nil); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		select {
		case <-replies[worker]:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}
