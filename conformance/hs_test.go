package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"bytes"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/felixlog/felix/conformance/recorder"
)

type nopc struct{ bytes.Buffer }
func (*nopc) Close() error { return nil }

func TestXHandshake(t *testing.T) {
	pki, _ := recorder.NewPKI()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(ca, pki.CAPEM, 0o644)
	addr := &net.UDPAddr{IP: net.IPv4(127,0,0,1)}
	u, _ := net.ListenUDP("udp", addr)
	tr := &quic.Transport{Conn: u}
	buf := &nopc{}
	_ = qlog.EventSchema
	ln, err := tr.Listen(recorder.TestConfig(pki), &quic.Config{Tracer: func(ctx context.Context, c bool, id quic.ConnectionID) qlogwriter.Trace {
		f := qlogwriter.NewConnectionFileSeq(buf, false, id)
		go f.Run()
		return f
	}})
	if err != nil { t.Fatal(err) }
	go func() { for { c, err := ln.Accept(context.Background()); if err != nil { return }; fmt.Println("accepted", time.Now().Format("05.000")); _ = c } }()
	fmt.Println("start", time.Now().Format("05.000"))
	out, err := exec.Command("/tmp/fx/venv/bin/python", "-c", `
import felix, time
t0=time.time()
print("py", time.time()%60)
try:
    c = felix.Client("`+u.LocalAddr().String()+`", tenant_id="t1", token="t", ca_file="`+ca+`")
except Exception as e: print(e)
print(time.time()-t0)
`).CombinedOutput()
	fmt.Println(string(out), err)
	ln.Close(); tr.Close()
	time.Sleep(200*time.Millisecond)
	os.WriteFile("/tmp/fx/hs/qlog.json", buf.Bytes(), 0o644)
	_ = tls.Config{}
}
