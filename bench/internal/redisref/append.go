package redisref

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/bench/internal/measure"
)

// An AppendSpec is a run of publishers that append records to one stream and
// wait for each answer.
type AppendSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	Publishers  int            `json:"publishers"`
	RecordBytes int            `json:"record_bytes"`
}

// streamCap keeps the stream, which Redis holds in memory, from growing
// without end.
const streamCap = "1000000"

// Append adds records to a stream, each publisher on a connection of its own.
func Append(ctx context.Context, spec AppendSpec) (measure.Result, error) {
	conns, closeAll, err := spec.Target.dialAll(ctx, spec.Publishers)
	if err != nil {
		return measure.Result{}, err
	}
	defer closeAll()
	add := command("XADD", "bench", "MAXLEN", "~", streamCap, "*", "p", string(make([]byte, spec.RecordBytes)))
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.Publishers, spec.RecordBytes, func(_ context.Context, w int) error {
		if _, err := conns[w].Write(add); err != nil {
			return err
		}
		id, err := conns[w].reply()
		if err == nil && id == 0 {
			return errors.New("redis: no entry id")
		}
		return err
	})
	if err != nil {
		return measure.Result{}, errors.Join(err, context.Cause(ctx))
	}
	r.Note("client", "%d connections, one XADD in flight on each", spec.Publishers)
	return r, nil
}

// dialAll opens n connections, which end with ctx at the latest.
func (t Target) dialAll(ctx context.Context, n int) (conns []*conn, closeAll func(), err error) {
	var cleanup []func()
	closeAll = func() {
		for _, f := range cleanup {
			f()
		}
	}
	for range n {
		c, err := t.dial(ctx)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("connect: %w", err)
		}
		stop := context.AfterFunc(ctx, c.close)
		cleanup = append(cleanup, func() { stop(); c.close() })
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}
