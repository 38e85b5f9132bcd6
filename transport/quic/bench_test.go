package quic

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/felixlog/felix/transport/udp"
)

// receivePaths are what the benchmarks compare.
var receivePaths = []struct {
	name   string
	socket udp.Options
}{
	{"plain", udp.Options{DisableGRO: true}},
	{"gro", udp.Options{}},
	{"gro+poll", udp.Options{Poll: 200 * time.Microsecond}},
}

func benchEnds(b *testing.B, socket udp.Options) *ends {
	return newEnds(b,
		func(o *ListenOptions) { o.Socket = socket },
		func(o *DialOptions) { o.Socket = socket })
}

// BenchmarkBulk moves 64 KiB writes over one unidirectional stream.
func BenchmarkBulk(b *testing.B) {
	for _, path := range receivePaths {
		b.Run(path.name, func(b *testing.B) {
			e := benchEnds(b, path.socket)
			client, server := e.connect(b)
			near, far := openUni(b, client, server)
			read := make(chan error, 1)
			go func() {
				buf := make([]byte, 256*kib)
				for {
					if _, err := far.Read(buf); err != nil {
						if err == io.EOF {
							err = nil
						}
						read <- err
						return
					}
				}
			}()
			chunk := make([]byte, 64*kib)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := near.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
			if err := near.CloseWrite(); err != nil {
				b.Fatal(err)
			}
			if err := <-read; err != nil {
				b.Fatal(err)
			}
			s := e.listener.Socket()
			b.ReportMetric(float64(s.Packets)/float64(s.Reads), "packets/read")
		})
	}
}

// BenchmarkEcho sends 256 bytes to and fro on one stream, so many at a time.
func BenchmarkEcho(b *testing.B) {
	const size = 256
	for _, path := range receivePaths {
		for _, flight := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/flight=%d", path.name, flight), func(b *testing.B) {
				e := benchEnds(b, path.socket)
				client, server := e.connect(b)
				near, far := openStream(b, client, server)
				go func() {
					// All that has arrived is answered in one write.
					buf := make([]byte, flight*size)
					for {
						n, err := far.Read(buf)
						if err != nil {
							return
						}
						if _, err := far.Write(buf[:n]); err != nil {
							return
						}
					}
				}()
				request, reply := make([]byte, size), make([]byte, size)
				b.ReportAllocs()
				for range flight - 1 {
					if _, err := near.Write(request); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					if _, err := near.Write(request); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(near, reply); err != nil {
						b.Fatal(err)
					}
				}
				s := e.listener.Socket()
				b.ReportMetric(float64(s.PollHits)/float64(max(s.PollHits+s.PollMisses, 1)), "hits/poll")
			})
		}
	}
}
