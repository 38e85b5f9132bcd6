package session_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// The benchmarks run client and node in one process: they show allocations
// and where time goes. Ratios are bench/compare's business.

func benchPeer(b *testing.B, n *felixtest.Node) transport.Conn {
	b.Helper()
	conf, err := tlsconfig.NewClient(tlsconfig.ClientOptions{CAPEM: n.CAPEM(), ServerName: "localhost"})
	if err != nil {
		b.Fatal(err)
	}
	d, err := quic.NewDialer(quic.DialOptions{TLS: conf})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	conn, err := d.Dial(b.Context(), n.Addr())
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

func benchLogin(b *testing.B, n *felixtest.Node, conn transport.Conn) (transport.Stream, *wire.FrameReader) {
	b.Helper()
	st, err := conn.OpenStream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := st.Write(wire.AppendMessage(nil, modern().Auth(n.Tenant(), n.Token()))); err != nil {
		b.Fatal(err)
	}
	in := wire.NewFrameReader(st, wire.MaxFramePayload)
	if _, _, err := in.Next(); err != nil {
		b.Fatal(err)
	}
	return st, in
}

func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{256, 1024} {
		b.Run(fmt.Sprintf("%dBx64", size), func(b *testing.B) {
			n := felixtest.Start(b)
			st, in := benchLogin(b, n, benchPeer(b, n))
			frame := benchFrame(n, size, 64)
			const window = 32
			b.SetBytes(int64(64 * size))
			b.ReportAllocs()
			b.ResetTimer()
			slots := make(chan struct{}, window)
			done := make(chan error, 1)
			go func() {
				for range b.N {
					if _, _, err := in.Next(); err != nil {
						done <- err
						return
					}
					<-slots
				}
				done <- nil
			}()
			for range b.N {
				slots <- struct{}{}
				if _, err := st.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchFrame(n *felixtest.Node, size, count int) []byte {
	payloads := make([][]byte, count)
	for i := range payloads {
		payloads[i] = make([]byte, size)
	}
	p := wire.Publish{
		Acked: true, RequestID: 1, AckMode: wire.AckPerBatch,
		Tenant: []byte(n.Tenant()), Namespace: []byte(n.Namespace()), Stream: []byte("s"),
		Block: wire.AppendBlock(nil, payloads...),
	}
	return p.Append(nil)
}

func BenchmarkCacheGet(b *testing.B) {
	n := felixtest.Start(b)
	st, in := benchLogin(b, n, benchPeer(b, n))
	say := func(m wire.Message) {
		if _, err := st.Write(wire.AppendMessage(nil, m)); err != nil {
			b.Fatal(err)
		}
	}
	key := []byte("0123456789abcdef")
	say(&wire.CachePut{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: key, Value: make([]byte, 256), RequestID: wire.Some[uint64](1)})
	if _, _, err := in.Next(); err != nil {
		b.Fatal(err)
	}
	frame := wire.AppendMessage(nil, &wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: key, RequestID: wire.Some[uint64](2)})
	b.ReportAllocs()
	b.ResetTimer()
	const flight = 32
	slots := make(chan struct{}, flight)
	done := make(chan error, 1)
	go func() {
		for range b.N {
			if _, _, err := in.Next(); err != nil && err != io.EOF {
				done <- err
				return
			}
			<-slots
		}
		done <- nil
	}()
	for range b.N {
		slots <- struct{}{}
		if _, err := st.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// One publish in flight, asked and answered on one goroutine: the round trip
// without a client's own machinery.
func BenchmarkLonePublish(b *testing.B) {
	n := felixtest.Start(b)
	st, in := benchLogin(b, n, benchPeer(b, n))
	frame := benchFrame(n, 256, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := st.TryWrite(frame); err != nil {
			b.Fatal(err)
		}
		if _, _, err := in.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
