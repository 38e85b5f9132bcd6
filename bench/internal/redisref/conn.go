package redisref

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// A conn is one connection.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func (t Target) dial(ctx context.Context) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	if !t.TLS {
		return &conn{Conn: raw, r: bufio.NewReaderSize(raw, 64<<10)}, nil
	}
	cfg, err := t.Files.Client()
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	secured := tls.Client(raw, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("handshake: %w", err), raw.Close())
	}
	return &conn{Conn: secured, r: bufio.NewReaderSize(secured, 64<<10)}, nil
}

func (c *conn) close() { _ = c.Conn.Close() } // the run is over

func (c *conn) ping() error {
	if _, err := c.Write(command("PING")); err != nil {
		return err
	}
	_, err := c.reply()
	return err
}

// reply reads one reply and returns the bytes of its value: none for a
// status. A missing key and an error reply are errors.
func (c *conn) reply() (int, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, fmt.Errorf("read reply: %w", err)
	}
	text := bytes.TrimRight(line[1:], "\r\n")
	switch line[0] {
	case '+':
		return 0, nil
	case '-':
		return 0, fmt.Errorf("redis: %s", text)
	case '$':
		n, err := strconv.Atoi(string(text)) // does not allocate
		if err != nil || n < 0 {
			return 0, fmt.Errorf("redis: no value (length %q)", text)
		}
		if _, err := c.r.Discard(n + len("\r\n")); err != nil {
			return 0, fmt.Errorf("read value: %w", err)
		}
		return n, nil
	default:
		return 0, fmt.Errorf("redis: unexpected reply %q", line)
	}
}
