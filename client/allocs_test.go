package client

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// A loopStream is a stream whose other end answers at once, in memory and
// without allocating: what is left is the client's own cost.
type loopStream struct {
	answer func(dst []byte, h wire.Header, payload []byte) []byte

	mu     sync.Mutex
	ready  *sync.Cond
	in     []byte // bytes to read
	at     int
	closed bool
}

func newLoopStream(answer func(dst []byte, h wire.Header, payload []byte) []byte) *loopStream {
	s := &loopStream{answer: answer}
	s.ready = sync.NewCond(&s.mu)
	return s
}

func (s *loopStream) Write(p []byte) (int, error) { return len(p), s.TryWrite(p) }

func (s *loopStream) TryWrite(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		h, err := wire.ParseHeader(p)
		if err != nil {
			return err
		}
		end := wire.HeaderSize + int(h.Length)
		s.in = s.answer(s.in, h, p[wire.HeaderSize:end])
		p = p[end:]
	}
	s.ready.Signal()
	return nil
}

func (s *loopStream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.at == len(s.in) && !s.closed {
		s.ready.Wait()
	}
	if s.at == len(s.in) {
		return 0, io.EOF
	}
	n := copy(p, s.in[s.at:])
	if s.at += n; s.at == len(s.in) {
		s.in, s.at = s.in[:0], 0
	}
	return n, nil
}

func (s *loopStream) close() {
	s.mu.Lock()
	s.closed = true
	s.ready.Broadcast()
	s.mu.Unlock()
}

func (s *loopStream) CloseWrite() error                { s.close(); return nil }
func (s *loopStream) CancelRead(uint64)                { s.close() }
func (s *loopStream) CancelWrite(uint64)               { s.close() }
func (s *loopStream) SetReadDeadline(time.Time) error  { return nil }
func (s *loopStream) SetWriteDeadline(time.Time) error { return nil }
func (s *loopStream) Context() context.Context         { return context.Background() }
func (s *loopStream) StreamID() uint64                 { return 0 }

// A loopConn is a connection that only has a life.
type loopConn struct {
	ctx context.Context
	end context.CancelFunc
}

func (c *loopConn) OpenStream(context.Context) (transport.Stream, error)        { return nil, io.EOF }
func (c *loopConn) OpenUniStream(context.Context) (transport.SendStream, error) { return nil, io.EOF }
func (c *loopConn) AcceptStream(context.Context) (transport.Stream, error)      { return nil, io.EOF }
func (c *loopConn) AcceptUniStream(context.Context) (transport.ReceiveStream, error) {
	return nil, io.EOF
}
func (c *loopConn) Close(uint64, string) error            { c.end(); return nil }
func (c *loopConn) Context() context.Context              { return c.ctx }
func (c *loopConn) LocalAddr() net.Addr                   { return nil }
func (c *loopConn) RemoteAddr() net.Addr                  { return nil }
func (c *loopConn) PeerCertificates() []*x509.Certificate { return nil }
func (c *loopConn) ALPN() string                          { return "" }
func (c *loopConn) Stats() transport.Stats                { return transport.Stats{} }

// loopClient is a client whose publish and cache streams loop back.
func loopClient(t testing.TB) *Client {
	t.Helper()
	cfg, err := configured(base(WithPools(Pools{PublishStreams: 1, CacheStreams: 1}))...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(cfg, []string{"127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b := c.endpoints.all()[0]
	caps := capabilitiesOf(fullOffer(nil).(*wire.AuthOK))
	cn := &conn{Conn: newLoopConn(), b: b}
	session := func(answer func([]byte, wire.Header, []byte) []byte) *session {
		st := newLoopStream(answer)
		context.AfterFunc(cn.Context(), st.close)
		return &session{st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload), caps: caps}
	}
	b.first, b.caps = cn, caps
	c.entry.Store(b)
	b.publishes[1][0].stream = newPublishStream(cn, session(answerAck()), true)
	b.caches.slots[0].stream.Store(newCallStream(b, session(answerValue())))
	return c
}

func newLoopConn() *loopConn {
	ctx, end := context.WithCancel(context.Background())
	return &loopConn{ctx, end}
}

func answerAck() func([]byte, wire.Header, []byte) []byte {
	var p wire.Publish
	var ack wire.Ack
	return func(dst []byte, h wire.Header, payload []byte) []byte {
		if wire.ParsePublish(h.Flags, payload, &p) != nil {
			return dst
		}
		ack = wire.Ack{RequestID: p.RequestID, HasOffset: true, Offset: p.RequestID}
		return ack.Append(dst)
	}
}

func answerValue() func([]byte, wire.Header, []byte) []byte {
	var d wire.Decoder
	var v wire.CacheValue
	value := wire.Some(bytes.Repeat([]byte("v"), 256))
	return func(dst []byte, h wire.Header, payload []byte) []byte {
		m, err := d.Decode(payload)
		if err != nil {
			return dst
		}
		get := m.(*wire.CacheGet)
		v = wire.CacheValue{Tenant: get.Tenant, Namespace: get.Namespace, Cache: get.Cache, Key: get.Key, Value: value, RequestID: get.RequestID}
		return wire.AppendMessage(dst, &v)
	}
}

func records(n, size int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = make([]byte, size)
	}
	return out
}

// steadyState is each hot path with the allocations it may make.
var steadyState = []struct {
	name  string
	most  float64
	setUp func(t testing.TB, c *Client) func()
}{
	{"pipelined batch with a callback", 0, func(t testing.TB, c *Client) func() {
		pub, payloads, done := c.Publisher("s"), records(64, 256), func(Ack, error) {}
		return func() {
			if err := pub.SendFunc(t.Context(), done, payloads...); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"pipelined batch with a future", 1, func(t testing.TB, c *Client) func() {
		pub, payloads := c.Publisher("s"), records(64, 256)
		return func() {
			if _, err := pub.Send(t.Context(), payloads...); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"lone publish", 0, func(t testing.TB, c *Client) func() {
		payload := make([]byte, 256)
		return func() {
			if _, err := c.Publish(t.Context(), "s", payload); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"lone publish with options", 2, func(t testing.TB, c *Client) func() {
		payload := make([]byte, 256)
		return func() {
			if _, err := c.Publish(t.Context(), "s", payload, WithAck(AckPerBatch), InNamespace("default")); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"cache get into a buffer", 0, func(t testing.TB, c *Client) func() {
		k, buf := c.Cache("k"), make([]byte, 0, 512)
		return func() {
			if v, ok, err := k.AppendGet(t.Context(), buf, "some-key"); err != nil || !ok || len(v) != 256 {
				t.Fatal(ok, err)
			}
		}
	}},
	{"cache get", 1, func(t testing.TB, c *Client) func() {
		k := c.Cache("k")
		return func() {
			if _, ok, err := k.Get(t.Context(), "some-key"); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
	}},
	{"event batch", 0, func(t testing.TB, c *Client) func() {
		sub := loopSubscription(c)
		return func() {
			b, err := sub.NextBatch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for ev := range b.Events() {
				if len(ev.Payload) != 256 {
					t.Fatal(len(ev.Payload))
				}
			}
		}
	}},
	{"event batch, record by record", 1, func(t testing.TB, c *Client) func() {
		sub := loopSubscription(c)
		return func() {
			for range 64 {
				if _, err := sub.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}},
}

// loopSubscription reads an endless run of batches of 64 records.
func loopSubscription(c *Client) *Subscription {
	e := &endless{}
	o := &subscribeOptions{}
	s := &Subscription{c: c, open: 1, positions: map[uint32]uint64{}}
	r := newShardReader(c, o, routeName{"default", "s"}, 0, Latest(), &s.stats)
	r.es = &eventStream{st: e, in: wire.NewFrameReader(e, wire.MaxFramePayload)}
	r.cn = &conn{}
	s.readers = []*shardReader{r}
	return s
}

// endless reads as event batches for ever.
type endless struct {
	next  uint64
	frame []byte
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at == len(e.frame) {
		if e.frame == nil {
			e.frame = (&wire.EventBatch{Shared: true, HasOffsets: true, Block: wire.AppendBlock(nil, records(64, 256)...)}).Append(nil)
		}
		copy(e.frame, wire.AppendEventHead(e.frame[:0], wire.FlagEventBatchShared|wire.FlagEventOffsets, 0, e.next, 0, nil, len(e.frame)-wire.HeaderSize-8))
		e.next += 64
		e.at = 0
	}
	n := copy(p, e.frame[e.at:])
	e.at += n
	return n, nil
}

func (e *endless) CancelRead(uint64)               {}
func (e *endless) SetReadDeadline(time.Time) error { return nil }
func (e *endless) StreamID() uint64                { return 0 }

func TestSteadyStateAllocations(t *testing.T) {
	for _, tc := range steadyState {
		t.Run(tc.name, func(t *testing.T) {
			c := loopClient(t)
			f := tc.setUp(t, c)
			for range 1000 { // fill pools, rings and buffers
				f()
			}
			// The garbage collector empties pools now and then, and other
			// goroutines are counted too: the average must come down to the
			// bound, not every run stay below it.
			if got := testing.AllocsPerRun(2000, f); got > tc.most && !raceEnabled {
				t.Errorf("%v allocations, at most %v", got, tc.most)
			}
		})
	}
}

func BenchmarkSteadyState(b *testing.B) {
	for _, tc := range steadyState {
		b.Run(tc.name, func(b *testing.B) {
			f := tc.setUp(b, loopClient(b))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
