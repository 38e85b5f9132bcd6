package rawquic

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/transport"
)

// A BulkSpec is a one-way run: the same frame over and over, one Write each,
// on one stream of each connection.
type BulkSpec struct {
	Addr   string         `json:"addr"`
	TLS    pki.Files      `json:"tls"`
	Poll   time.Duration  `json:"poll_ns"`
	Phases measure.Phases `json:"phases"`
	Conns  int            `json:"conns"`
	// Events sends the frames a subscriber receives; otherwise those of an
	// acknowledged publish.
	Events bool `json:"events"`
	// Batch is the records of a frame, RecordBytes the payload of each.
	Batch       int `json:"batch"`
	RecordBytes int `json:"record_bytes"`
}

func (s BulkSpec) frame() []byte {
	if s.Events {
		return frames.EventBatch(s.Batch, s.RecordBytes)
	}
	return frames.PublishBatch(s.Batch, s.RecordBytes)
}

// Bulk sends and reports what the server received: from its count at the end
// of the warm-up to its last arrival, by its clock.
func Bulk(ctx context.Context, spec BulkSpec) (measure.Result, error) {
	c, err := dial(ctx, spec.TLS, spec.Addr, spec.Poll, spec.Conns)
	if err != nil {
		return measure.Result{}, fmt.Errorf("dial: %w", err)
	}
	defer c.close()
	// Marks travel on a connection of their own, so as not to queue behind
	// what they measure.
	marks, err := c.dialer.Dial(ctx, spec.Addr)
	if err != nil {
		return measure.Result{}, fmt.Errorf("dial: %w", err)
	}
	defer func() { _ = marks.Close(0, "done") }()
	base, err := ask(ctx, marks, 0)
	if err != nil {
		return measure.Result{}, err
	}

	begin := time.Now().Add(spec.Phases.Warmup)
	end := begin.Add(spec.Phases.Measure)
	frame, sent := spec.frame(), make([]uint64, spec.Conns)
	g, gctx := errgroup.WithContext(ctx)
	for i, conn := range c.conns {
		g.Go(func() error {
			var err error
			sent[i], err = send(gctx, conn, frame, end)
			return err
		})
	}
	var first mark
	g.Go(func() error {
		select {
		case <-time.After(time.Until(begin)):
		case <-gctx.Done():
			return context.Cause(gctx)
		}
		var err error
		first, err = ask(gctx, marks, 0)
		return err
	})
	if err := g.Wait(); err != nil {
		return measure.Result{}, err
	}
	var total uint64
	for _, n := range sent {
		total += n
	}
	last, err := ask(ctx, marks, base.frames+total)
	if err != nil {
		return measure.Result{}, err
	}
	if got := last.frames - base.frames; got != total {
		return measure.Result{}, fmt.Errorf("sent %d frames, %d arrived", total, got)
	}
	records := (last.frames - first.frames) * uint64(spec.Batch)
	r := measure.Result{
		Records: records,
		Bytes:   records * uint64(spec.RecordBytes),
		Elapsed: last.at - first.at,
	}
	c.note(&r)
	return r, nil
}

func send(ctx context.Context, conn transport.Conn, frame []byte, end time.Time) (uint64, error) {
	st, err := conn.OpenUniStream(ctx)
	if err != nil {
		return 0, fmt.Errorf("open stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { st.CancelWrite(0) })
	defer stop()
	var n uint64
	for time.Now().Before(end) {
		if _, err := st.Write(frame); err != nil {
			return n, fmt.Errorf("write: %w", err)
		}
		n++
	}
	return n, st.CloseWrite()
}

// A mark is a server's count and the time it stood at, on its clock.
type mark struct {
	frames uint64
	at     time.Duration
}

// ask waits until the server has want frames and returns its mark.
func ask(ctx context.Context, conn transport.Conn, want uint64) (mark, error) {
	st, err := conn.OpenStream(ctx)
	if err != nil {
		return mark{}, fmt.Errorf("open mark stream: %w", err)
	}
	defer st.CancelRead(0)
	stop := context.AfterFunc(ctx, func() { st.CancelRead(0); st.CancelWrite(0) })
	defer stop()
	if _, err := st.Write(binary.BigEndian.AppendUint64([]byte{kindMark}, want)); err != nil {
		return mark{}, fmt.Errorf("ask for a mark: %w", err)
	}
	_ = st.CloseWrite() // the server may have answered by now, and read no more
	var a [markSize]byte
	if _, err := io.ReadFull(st, a[:]); err != nil {
		return mark{}, fmt.Errorf("read mark: %w", err)
	}
	return mark{
		frames: binary.BigEndian.Uint64(a[:8]),
		at:     time.Duration(binary.BigEndian.Uint64(a[8:])),
	}, nil
}
