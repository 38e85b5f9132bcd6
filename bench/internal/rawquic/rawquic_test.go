package rawquic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/wire"
)

// serve runs a server for the length of the test.
func serve(t *testing.T) (ctx context.Context, files pki.Files, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	files, err := pki.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	addrs := make(chan string, 1)
	go func() {
		ended <- Serve(serving, ServerSpec{TLS: files}, func(e Endpoint) error { addrs <- e.Addr; return nil })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	select {
	case addr := <-addrs:
		return ctx, files, addr
	case err := <-ended:
		ended <- nil
		t.Fatalf("server ended: %v", err)
		return nil, files, ""
	}
}

// brief has no warm-up: what begins in it would not count, and on a busy
// machine one request can outlast it and the run.
func brief() measure.Phases { return measure.Phases{Measure: 100 * time.Millisecond} }

func TestBulkCountsEveryFrame(t *testing.T) {
	ctx, files, addr := serve(t)
	for _, conns := range []int{1, 3} {
		r, err := Bulk(ctx, BulkSpec{Addr: addr, TLS: files, Phases: brief(), Conns: conns, Events: conns > 1, Batch: 10, RecordBytes: 90})
		if err != nil {
			t.Fatal(err)
		}
		if r.Records == 0 || r.Records%10 != 0 || r.Bytes != r.Records*90 || r.Elapsed <= 0 {
			t.Errorf("%d connections: %+v", conns, r)
		}
	}
}

func TestEchoAnswersEveryRequest(t *testing.T) {
	ctx, files, addr := serve(t)
	for _, c := range []struct{ inFlight, request, reply int }{{1, 300, 23}, {8, 150, 500}, {8, 6000, 40}, {4, 1, 1}} {
		r, err := Echo(ctx, EchoSpec{
			Addr: addr, TLS: files, Phases: brief(), InFlight: c.inFlight, Request: c.request, Reply: c.reply, Bytes: 7,
		})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if r.Records == 0 || r.Bytes != 7*r.Records || r.P50 <= 0 || r.P99 < r.P50 {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

func TestFramesHaveTheSizesAskedFor(t *testing.T) {
	for _, c := range []struct{ request, reply, wantRequest, wantReply int }{
		{300, 400, 300, 400}, {20, 16, 20, 16}, {0, 0, 20, 16},
	} {
		request := appendRequest(nil, 9, c.request, c.reply)
		reply := appendReply(nil, request[wire.HeaderSize:])
		if len(request) != c.wantRequest || len(reply) != c.wantReply || slotOf(reply[wire.HeaderSize:]) != 9 {
			t.Errorf("request of %d and reply of %d bytes, want %d and %d; slot %d",
				len(request), len(reply), c.wantRequest, c.wantReply, slotOf(reply[wire.HeaderSize:]))
		}
	}
}

func TestCutterCutsWhateverTheReadsAre(t *testing.T) {
	var stream []byte
	for i := range 50 {
		stream = append(stream, appendRequest(nil, uint32(i), 20+i*7, 0)...)
	}
	for name, r := range map[string]io.Reader{
		"whole":    bytes.NewReader(stream),
		"by bytes": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":   iotest.HalfReader(bytes.NewReader(stream)),
	} {
		cut := cutter{buf: make([]byte, 1024)}
		next, frames := uint32(0), 0
		for {
			n, err := cut.read(r, func(p []byte) {
				if slotOf(p) != next {
					t.Fatalf("%s: frame %d comes as %d", name, next, slotOf(p))
				}
				next++
			})
			frames += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if frames != 50 || next != 50 || cut.n != 0 {
			t.Errorf("%s: %d frames, %d bytes left over", name, frames, cut.n)
		}
	}
}

func TestCutterRefusesWhatCannotFit(t *testing.T) {
	for name, stream := range map[string][]byte{
		"too long":    wire.AppendHeader(nil, 0, 5000),
		"not a frame": []byte("GET / HTTP/1.1\r\n"),
	} {
		cut := cutter{buf: make([]byte, 1024)}
		if _, err := cut.read(bytes.NewReader(stream), nil); !errors.Is(err, errFrame) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
