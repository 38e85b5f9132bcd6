package peer

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// A caller that knows the cluster but not the token cannot pass by any bytes,
// and a listener that does not know it is not believed.
func TestTokenIsNeeded(t *testing.T) {
	_, b := pair(t, nil)
	b.HTTP()
	h := hello{kind: HTTP, from: 1, to: 2, cluster: "c"}
	for name, proof := range map[string][]byte{
		"zeros":      make([]byte, 32),
		"own answer": nil, // the listener's MAC sent back
	} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(h.append(nil)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 1+32+32)
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		if proof == nil {
			proof = answer[33:]
		}
		if _, err := conn.Write(proof); err != nil {
			t.Fatal(err)
		}
		var last [1]byte
		if _, err := io.ReadFull(conn, last[:]); err != nil || !errors.Is(statusError(last[0]), BadToken) {
			t.Errorf("%s: status %d, %v", name, last[0], err)
		}
		_ = conn.Close()
	}

	// A listener that only echoes what it can.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _, _ = readHello(c)
		_, _ = c.Write(make([]byte, 65))
		_ = c.Close()
	}()
	a := newMember(t, 1, func(c *Config) { c.Peers[2] = ln.Addr().String() })
	if _, err := a.Dial(t.Context(), HTTP, 2); !errors.Is(err, BadToken) {
		t.Errorf("false listener: %v", err)
	}
}

func TestMalformed(t *testing.T) {
	_, b := pair(t, nil)
	b.HTTP()
	h := hello{kind: HTTP, from: 1, to: 2, cluster: "c"}
	good := h.append(nil)
	edit := func(at int, v byte) []byte {
		c := slices.Clone(good)
		c[at] = v
		return c
	}
	for name, raw := range map[string][]byte{
		"HTTP without a handshake": []byte("GET /internal/raft/standing HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat(" ", 64)),
		"other version":            edit(4, 2),
		"other kind":               edit(5, 7),
	} {
		before := len(b.refusals())
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(raw); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(conn)
		_ = conn.Close()
		if len(got) > 1 {
			t.Errorf("%s: %d bytes of an answer", name, len(got))
		}
		waitFor(t, func() bool { return len(b.refusals()) > before })
		if r := b.refusals(); r[len(r)-1] != Malformed {
			t.Errorf("%s: %v", name, r)
		}
	}
}

func FuzzHello(f *testing.F) {
	h := hello{kind: Raft, from: 1, to: 2, cluster: "cluster"}
	good := h.append(nil)
	f.Add(good)
	f.Add(good[:20])
	f.Add(binary.BigEndian.AppendUint64([]byte(magic), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, raw, err := readHello(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		if again := h.append(nil); string(again) != string(raw) || !strings.HasPrefix(string(b), string(raw)) {
			t.Errorf("%x was read as %x", b, again)
		}
	})
}
