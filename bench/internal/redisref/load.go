package redisref

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/bench/internal/coalesce"
	"github.com/felixlog/felix/bench/internal/measure"
)

// A LoadSpec is a run of GETs or SETs.
type LoadSpec struct {
	Target   Target         `json:"target"`
	Phases   measure.Phases `json:"phases"`
	InFlight int            `json:"in_flight"`
	// Pipelined puts all requests in flight on one connection; otherwise
	// each has a connection of its own.
	Pipelined bool `json:"pipelined"`
	Put       bool `json:"put"`
	Value     int  `json:"value_bytes"`
	Keys      int  `json:"keys"`
}

// Load keeps requests in flight against a server that holds every key.
func Load(ctx context.Context, spec LoadSpec) (measure.Result, error) {
	if err := fill(ctx, spec); err != nil {
		return measure.Result{}, fmt.Errorf("fill: %w", err)
	}
	if spec.Pipelined {
		return pipelined(ctx, spec)
	}
	return connected(ctx, spec)
}

func fill(ctx context.Context, spec LoadSpec) error {
	c, err := spec.Target.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	for _, cmd := range spec.commands(true) {
		if _, err := c.Write(cmd); err != nil {
			return err
		}
		if _, err := c.reply(); err != nil {
			return err
		}
	}
	return nil
}

// commands encodes one command for each key, ahead of the run.
func (s LoadSpec) commands(put bool) map[string][]byte {
	value := string(make([]byte, s.Value))
	out := make(map[string][]byte, s.Keys)
	for _, k := range measure.NewKeys(s.Keys) {
		if put {
			out[k] = command("SET", k, value)
		} else {
			out[k] = command("GET", k)
		}
	}
	return out
}

// check reads one reply and holds it against what the run must answer.
func (s LoadSpec) check(c *conn) error {
	n, err := c.reply()
	if err != nil {
		return err
	}
	if !s.Put && n != s.Value {
		return fmt.Errorf("redis: a value of %d bytes, want %d", n, s.Value)
	}
	return nil
}

// connected has one request in flight on each of many connections.
func connected(ctx context.Context, spec LoadSpec) (measure.Result, error) {
	conns, closeAll, err := spec.Target.dialAll(ctx, spec.InFlight)
	if err != nil {
		return measure.Result{}, err
	}
	defer closeAll()
	commands, walk := spec.commands(spec.Put), measure.NewKeys(spec.Keys).Walk(spec.InFlight)
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.Value, func(_ context.Context, w int) error {
		if _, err := conns[w].Write(commands[walk.Next(w)]); err != nil {
			return err
		}
		return spec.check(conns[w])
	})
	if err != nil {
		return measure.Result{}, errors.Join(err, context.Cause(ctx))
	}
	r.Note("client", "%d connections, one request in flight on each", spec.InFlight)
	return r, nil
}

// pipelined has all requests in flight on one connection, as Felix's client
// has them on one stream. Replies come in the order of the requests.
func pipelined(ctx context.Context, spec LoadSpec) (measure.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := spec.Target.dial(ctx)
	if err != nil {
		return measure.Result{}, fmt.Errorf("connect: %w", err)
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	order := make(chan int, spec.InFlight)
	answered := make([]chan struct{}, spec.InFlight)
	for i := range answered {
		answered[i] = make(chan struct{}, 1)
	}
	go func() {
		for {
			select {
			case w := <-order:
				if err := spec.check(c); err != nil {
					cancel(err)
					return
				}
				answered[w] <- struct{}{}
			case <-ctx.Done():
				return
			}
		}
	}()
	commands, walk := spec.commands(spec.Put), measure.NewKeys(spec.Keys).Walk(spec.InFlight)
	out := coalesce.Writer{W: c}
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.Value, func(ctx context.Context, w int) error {
		if err := out.Write(commands[walk.Next(w)], func() { order <- w }); err != nil {
			return err
		}
		select {
		case <-answered[w]:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return measure.Result{}, errors.Join(err, context.Cause(ctx))
	}
	r.Note("client", "1 connection, %d requests pipelined on it", spec.InFlight)
	return r, nil
}
