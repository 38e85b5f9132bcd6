package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

// startBroker runs a development broker for one test.
func startBroker(t *testing.T, flags map[string]string) *dev.Server {
	t.Helper()
	server, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Flags: flags, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// appFor is an App whose environment leads to a broker.
func appFor(t *testing.T, server *dev.Server, further ...string) *testApp {
	t.Helper()
	ta := newTestApp(t, map[string]string{
		"FELIX_BROKERS": server.Addr(), "FELIX_AUTH_TENANT": dev.Tenant,
		"FELIX_AUTH_TOKEN_FILE": server.TokenFile(), "FELIX_CA_FILE": server.CAFile(),
	})
	ta.Environ = func() []string { return slices.Clone(further) }
	return ta
}

// runs runs a command line that must succeed, and returns what it printed.
func (ta *testApp) runs(t *testing.T, args ...string) string {
	t.Helper()
	ta.out.Reset()
	ta.errs.Reset()
	if code := ta.Run(t.Context(), args); code != ExitOK {
		t.Fatalf("felix %s: exit %d: %s", strings.Join(args, " "), code, &ta.errs)
	}
	return ta.out.String()
}

// A reader of standard input that gives what is written to it, as it comes.
func typing(t *testing.T) (in io.Reader, out *io.PipeWriter) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r, w
}

// Lines are sent as they come, not when a batch is full.
func TestPubSendsSlowLinesAtOnce(t *testing.T) {
	server := startBroker(t, nil)
	c, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	subscription, err := c.Subscribe(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close()
	ta := appFor(t, server)
	in, out := typing(t)
	ta.Stdin = in
	done := make(chan int, 1)
	go func() { done <- ta.Run(t.Context(), []string{"pub", "slow", "--json"}) }()
	for _, line := range []string{"one", "", "three"} {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
		event, err := subscription.Next(t.Context())
		if err != nil || string(event.Payload) != line {
			t.Fatalf("got %q, error %v; want %q", event.Payload, err, line)
		}
	}
	out.Close()
	if code := <-done; code != ExitOK {
		t.Fatalf("exit %d: %s", code, &ta.errs)
	}
	if !strings.Contains(ta.out.String(), `"published":3,`) {
		t.Errorf("said %s", &ta.out)
	}
}

// Ctrl-C ends a publish that waits for its input, and says how far it came.
func TestPubIsInterrupted(t *testing.T) {
	server := startBroker(t, nil)
	ta := appFor(t, server)
	in, out := typing(t)
	ta.Stdin = in
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() { done <- ta.Run(ctx, []string{"pub", "orders"}) }()
	if _, err := io.WriteString(out, "one\n"); err != nil {
		t.Fatal(err)
	}
	// The second line is read once the first was handed over.
	if _, err := io.WriteString(out, "two\n"); err != nil {
		t.Fatal(err)
	}
	cancel(errInterrupted)
	if code := <-done; code != ExitOther {
		t.Errorf("exit %d, want %d", code, ExitOther)
	}
	if said := ta.errs.String(); !strings.Contains(said, "felix: interrupted\n") {
		t.Errorf("said %q", said)
	}
}

// Ctrl-C while a broker is being reached is told as that, not as silence.
func TestDialIsInterrupted(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ta := newTestApp(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- ta.Run(ctx, []string{"pub", "orders", "x", "--brokers", silent.LocalAddr().String(), "--tenant", "t", "--token", "x"})
	}()
	if _, _, err := silent.ReadFrom(make([]byte, 2048)); err != nil { // the handshake has begun
		t.Fatal(err)
	}
	cancel(errInterrupted)
	if code := <-done; code != ExitOther || ta.errs.String() != "felix: interrupted\n" {
		t.Errorf("exit %d, said %q", code, &ta.errs)
	}
}

// Ctrl-C ends a subscription with exit code 0 and everything printed.
func TestSubIsInterrupted(t *testing.T) {
	server := startBroker(t, nil)
	publisher, reader := appFor(t, server), appFor(t, server)
	publisher.runs(t, "pub", "orders", "hello", "--count", "3")
	screen := &lockedBuffer{}
	reader.Stdout = screen
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() { done <- reader.Run(ctx, []string{"sub", "orders", "--from", "earliest"}) }()
	waitFor(t, func() bool { return screen.String() == "hello\nhello\nhello\n" })
	cancel(errInterrupted)
	if code := <-done; code != ExitOK {
		t.Errorf("exit %d: %s", code, &reader.errs)
	}
	// It says where to go on, in a form that --from takes.
	_, at, told := strings.Cut(reader.errs.String(), "to go on: --from ")
	if !told {
		t.Fatalf("told: %s", &reader.errs)
	}
	publisher.runs(t, "pub", "orders", "again")
	reader.Stdout = &reader.out
	if got := reader.runs(t, "sub", "orders", "--from", strings.TrimSpace(at), "--count", "1"); got != "again\n" {
		t.Errorf("going on brought %q", got)
	}
}

// A file of any bytes comes back byte for byte, whatever the options of
// batching and keys.
func TestFileComesBack(t *testing.T) {
	server := startBroker(t, nil)
	var file bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&file, "%d \x00\xff\r\t%s\n", i, strings.Repeat("é", i%50))
		if i%7 == 0 {
			file.WriteByte('\n')
		}
	}
	lines := bytes.Count(file.Bytes(), []byte{'\n'})
	for i, options := range [][]string{nil, {"--key", "k"}, {"--key", ""}, {"--ack", "none"}} {
		ta := appFor(t, server)
		stream := fmt.Sprintf("file-%d", i)
		ta.Stdin = bytes.NewReader(file.Bytes())
		ta.runs(t, append([]string{"pub", stream}, options...)...)
		got := ta.runs(t, "sub", stream, "--from", "earliest", "--count", fmt.Sprint(lines))
		if got != file.String() {
			t.Errorf("%v: %d bytes came back of %d, or others", options, len(got), file.Len())
		}
	}
}

// On a terminal a bulk publish shows how far it is, and takes it away again
// before it says the result.
func TestPubShowsProgressToAPerson(t *testing.T) {
	server := startBroker(t, nil)
	ta := appFor(t, server)
	screen := &lockedBuffer{}
	ta.Stderr, ta.StderrTTY = screen, true
	in, out := typing(t)
	ta.Stdin = in
	done := make(chan int, 1)
	go func() { done <- ta.Run(t.Context(), []string{"pub", "orders"}) }()
	if _, err := io.WriteString(out, "one\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(screen.String(), "1 message") })
	out.Close()
	if code := <-done; code != ExitOK {
		t.Fatalf("exit %d: %s", code, screen)
	}
	if strings.Contains(ta.out.String(), "\x1b") {
		t.Errorf("standard output got %q", &ta.out)
	}
}

// A reader too slow for its queue loses messages, and hears about it.
func TestSubReportsGaps(t *testing.T) {
	server := startBroker(t, map[string]string{"subscriber-queue-capacity": "1"})
	reader := appFor(t, server, "FELIX_EVENT_STREAM_RECV_WINDOW=65536", "FELIX_EVENT_CONN_RECV_WINDOW=65536")
	screen := &lockedBuffer{}
	remarks := &lockedBuffer{}
	gate := make(chan struct{})
	reader.Stdout = writerFunc(func(p []byte) (int, error) {
		<-gate
		return screen.Write(p)
	})
	reader.Stderr = remarks
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() { done <- reader.Run(ctx, []string{"sub", "load", "--format", "offsets"}) }()
	waitFor(t, func() bool { return strings.Contains(remarks.String(), "subscribed to load") })

	c, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const messages = 400
	for i := range messages {
		if _, err := c.Publish(t.Context(), "load", bytes.Repeat([]byte{'x'}, 4096), client.WithAck(client.AckPerMessage)); err != nil {
			t.Fatalf("publish %d: %v", i, err)
		}
	}
	close(gate)
	// A last message arrives after the gap and shows it.
	waitFor(t, func() bool {
		if _, err := c.Publish(t.Context(), "load", []byte("last")); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(remarks.String(), "lost before shard 0 offset")
	})
	cancel(errInterrupted)
	if code := <-done; code != ExitOK {
		t.Errorf("exit %d: %s", code, remarks)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A broker that is interrupted twice does not wait for its drain.
func TestSecondSignalForces(t *testing.T) {
	force := make(chan struct{})
	ta := newTestApp(t, nil)
	ta.Force = force
	ctx, cancel := context.WithCancelCause(t.Context())
	stuck := &stuckServer{done: make(chan struct{}), stopping: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- ta.serve(ctx, stuck) }()
	cancel(errInterrupted)
	<-stuck.stopping
	select {
	case err := <-ended:
		t.Fatalf("ended with %v before it was forced", err)
	default:
	}
	close(force)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A stuckServer drains for ever.
type stuckServer struct{ done, stopping chan struct{} }

func (s *stuckServer) Done() <-chan struct{} { return s.done }

func (s *stuckServer) Shutdown(ctx context.Context) error {
	close(s.stopping)
	<-ctx.Done()
	return ctx.Err()
}

// What the ready line of a development broker names works.
func TestDevServesItsAdminAddress(t *testing.T) {
	server := startBroker(t, nil)
	for _, path := range []string{"/live", "/ready", "/metrics"} {
		if status := httpStatus(t, server.AdminURL()+path); status != 200 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	if filepath.Base(server.TokenFile()) != "token" || filepath.Base(server.CAFile()) != "ca.pem" {
		t.Errorf("files %s and %s", server.TokenFile(), server.CAFile())
	}
}
