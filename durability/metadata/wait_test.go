package metadata

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patience bounds every single wait for a process or an answer.
const patience = 60 * time.Second

// ports of this test binary: each is given once, and lies below those that the
// system gives to connections, so that it stays free while nobody has it.
var ports struct {
	mu   sync.Mutex
	next int
}

// freeAddr is an address where nobody listens, for TCP and UDP.
func freeAddr(t testing.TB) string {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	const first, last = 20_000, 32_000
	if ports.next == 0 {
		ports.next = first + os.Getpid()*37%(last-first)
	}
	for range last - first {
		if ports.next++; ports.next >= last {
			ports.next = first
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.next))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		_ = l.Close()
		u, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		_ = u.Close()
		return addr
	}
	t.Fatal("no port is free")
	return ""
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what must come true.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	within := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(within) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// bounded is a context for one step of a test.
func bounded(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

// setting is a number of the environment, or what a test of every day takes.
func setting(t testing.TB, name string, everyday int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return everyday
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1 on", name, text)
	}
	return n
}
