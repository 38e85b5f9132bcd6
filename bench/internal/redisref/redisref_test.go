package redisref

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
)

// A double answers GET and SET on a listener as Redis does.
type double struct {
	values map[string]string
}

func (d *double) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go d.session(c)
	}
}

func (d *double) session(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	word := func() string {
		_, _ = r.ReadString('\n')
		w, _ := r.ReadString('\n')
		return strings.TrimRight(w, "\r\n")
	}
	for {
		head, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var reply string
		switch {
		case head == "*1\r\n":
			word()
			reply = "+PONG\r\n"
		case head == "*2\r\n":
			word()
			reply = d.values[word()]
		default:
			word()
			word()
			word()
			reply = "+OK\r\n"
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// every answers each key of a run with the same reply.
func every(keys int, reply string) map[string]string {
	values := make(map[string]string)
	for _, k := range measure.NewKeys(keys) {
		values[k] = reply
	}
	return values
}

func listen(t *testing.T, values map[string]string) Target {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go (&double{values: values}).serve(ln)
	return Target{Addr: ln.Addr().String()}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func load(target Target, pipelined, put bool) LoadSpec {
	return LoadSpec{
		Target: target, Phases: measure.Phases{Measure: time.Second},
		InFlight: 4, Pipelined: pipelined, Put: put, Value: 5, Keys: 10,
	}
}

func TestLoadAgainstADouble(t *testing.T) {
	target := listen(t, every(10, "$5\r\nhello\r\n"))
	for _, pipelined := range []bool{false, true} {
		for _, put := range []bool{false, true} {
			r, err := Load(bounded(t), load(target, pipelined, put))
			if err != nil {
				t.Fatalf("pipelined %v, put %v: %v", pipelined, put, err)
			}
			if r.Records == 0 || r.Bytes != 5*r.Records || r.P99 < r.P50 {
				t.Errorf("pipelined %v, put %v: %+v", pipelined, put, r)
			}
		}
	}
}

func TestAWrongAnswerEndsTheRun(t *testing.T) {
	for name, reply := range map[string]string{
		"missing key":  "$-1\r\n",
		"wrong length": "$4\r\nhell\r\n",
		"error":        "-ERR no\r\n",
		"not RESP":     "hello\r\n",
	} {
		for _, pipelined := range []bool{false, true} {
			if _, err := Load(bounded(t), load(listen(t, every(10, reply)), pipelined, false)); err == nil {
				t.Errorf("%s, pipelined %v: the run passes", name, pipelined)
			}
		}
	}
}

func TestArgs(t *testing.T) {
	files := pki.Files{CA: "/ca.pem", Cert: "/cert.pem", Key: "/key.pem"}
	plain, err := Target{Addr: "127.0.0.1:7000"}.Args("/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(plain, "--port"); i < 0 || plain[i+1] != "7000" || slices.Contains(plain, "--tls-port") {
		t.Errorf("plain: %q", plain)
	}
	secured, err := Target{Addr: "127.0.0.1:7000", TLS: true, Files: files}.Args("/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(secured, "--port"); i < 0 || secured[i+1] != "0" {
		t.Errorf("with TLS the plain port stays open: %q", secured)
	}
	if i := slices.Index(secured, "--tls-port"); i < 0 || secured[i+1] != "7000" {
		t.Errorf("tls: %q", secured)
	}
	for _, args := range [][]string{plain, secured} {
		if i := slices.Index(args, "--save"); i < 0 || args[i+1] != "" {
			t.Errorf("snapshots are on: %q", args)
		}
	}
}

func TestReadyGivesUpWithItsContext(t *testing.T) {
	target, err := NewTarget(false, pki.Files{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := target.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ready = %v, want the deadline", err)
	}
}
