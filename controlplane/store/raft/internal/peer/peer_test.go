package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "a token of a group, long enough for it"

type member struct {
	*Mux
	mu       sync.Mutex
	rejected []Refusal
}

func (m *member) refusals() []Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rejected)
}

// newMember listens as id; peers are filled in by pair.
func newMember(t *testing.T, id uint64, change func(*Config)) *member {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{}
	cfg := Config{
		ClusterID: "c", NodeID: id, Peers: map[uint64]string{1: "", 2: "", 3: ""}, Token: token,
		Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Rejected: func(r Refusal) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.rejected = append(m.rejected, r)
		},
	}
	cfg.Peers[id] = ln.Addr().String()
	if change != nil {
		change(&cfg)
	}
	m.Mux = Listen(ln, cfg)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// pair makes two members that know each other; change is applied to the first,
// which calls.
func pair(t *testing.T, change func(*Config)) (caller, listener *member) {
	t.Helper()
	listener = newMember(t, 2, nil)
	caller = newMember(t, 1, func(c *Config) {
		c.Peers[2] = listener.Addr().String()
		if change != nil {
			change(c)
		}
	})
	return caller, listener
}

func echo(ln net.Listener, word string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, word)
		_ = c.Close()
	}
}

func TestBothKinds(t *testing.T) {
	a, b := pair(t, nil)
	raft, http := b.Raft(), b.HTTP()
	go echo(raft, "raft")
	go echo(http, "http")
	for kind, want := range map[Kind]string{Raft: "raft", HTTP: "http"} {
		c, err := a.Dial(t.Context(), kind, 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		_ = c.Close()
		if err != nil || string(got) != want {
			t.Errorf("kind %d: %q, %v", kind, got, err)
		}
	}
	if r := b.refusals(); len(r) != 0 {
		t.Errorf("refused: %v", r)
	}
}

func TestRefusals(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Config)
		want   Refusal
	}{
		{"other cluster", func(c *Config) { c.ClusterID = "d" }, OtherCluster},
		{"other token", func(c *Config) { c.Token = strings.ToUpper(token) }, BadToken},
		{"no token", func(c *Config) { c.Token = "" }, BadToken},
		{"unknown member", func(c *Config) { c.NodeID = 9 }, UnknownPeer},
		{"the listener itself", func(c *Config) { c.NodeID = 2 }, UnknownPeer},
		{"wrong address", func(c *Config) { c.Peers[3] = c.Peers[2] }, WrongMember},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t, c.change)
			b.HTTP()
			to := uint64(2)
			if c.want == WrongMember {
				to = 3
			}
			conn, err := a.Dial(t.Context(), HTTP, to)
			if err == nil {
				_ = conn.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("dial: %v, want %v", err, c.want)
			}
			if strings.Contains(err.Error(), token) {
				t.Error("the error holds the token")
			}
		})
	}
	t.Run("nobody takes part yet", func(t *testing.T) {
		a, _ := pair(t, nil)
		if _, err := a.Dial(t.Context(), Raft, 2); !errors.Is(err, NotReady) {
			t.Errorf("dial: %v", err)
		}
	})
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}

// Strangers that say nothing take up a bounded number of places, and the
// members' connections stay.
func TestStrangersAreBounded(t *testing.T) {
	a, b := pair(t, nil)
	http := b.HTTP()
	c, err := a.Dial(t.Context(), HTTP, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, err := http.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for range maxStrangers + 10 {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	waitFor(t, func() bool { return slices.Contains(b.refusals(), TooMany) })
	if _, err := s.Write([]byte("x")); err != nil {
		t.Errorf("the member's connection: %v", err)
	}
	var one [1]byte
	if _, err := io.ReadFull(c, one[:]); err != nil {
		t.Errorf("the member's connection: %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	a, b := pair(t, nil)
	http := b.HTTP()
	c, err := a.Dial(t.Context(), HTTP, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := http.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if _, err := http.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Dial(ctx, HTTP, 2); err == nil {
		t.Error("dialled a closed listener")
	}
}
