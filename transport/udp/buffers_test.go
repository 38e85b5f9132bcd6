package udp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// A fakeBuffer is a kernel with its own ideas.
type fakeBuffer struct {
	now    int
	most   int  // set beyond it is refused, or clamped
	clamps bool // like Linux: give less and say nothing
	forces bool // the process is privileged
	silent bool // the system does not tell sizes
	asked  []int
}

var errRefused = errors.New("no buffer space available")

func (b *fakeBuffer) set(n int) error {
	b.asked = append(b.asked, n)
	if n > b.most {
		if !b.clamps {
			return errRefused
		}
		n = b.most
	}
	b.now = n
	return nil
}

func (b *fakeBuffer) force(n int) error {
	if !b.forces {
		return errRefused
	}
	b.now = n
	return nil
}

func (b *fakeBuffer) size() int {
	if b.silent {
		return 0
	}
	return b.now
}

func TestEnlarge(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		b    fakeBuffer
		want int
		got  int
		asks int
	}{
		{"given", fakeBuffer{most: 16 * mib}, 8 * mib, 8 * mib, 1},
		{"clamped", fakeBuffer{most: 3 * mib, clamps: true}, 8 * mib, 3 * mib, 1},
		{"clamped, privileged", fakeBuffer{most: 3 * mib, clamps: true, forces: true}, 8 * mib, 8 * mib, 1},
		{"refused until half of half", fakeBuffer{most: 3 * mib}, 8 * mib, 2 * mib, 3},
		{"refused, sizes unknown", fakeBuffer{most: 3 * mib, silent: true}, 8 * mib, 2 * mib, 3},
		{"refused altogether", fakeBuffer{now: 1000, most: 1}, 8 * mib, 1000, 8},
		{"small on request", fakeBuffer{now: mib, most: mib}, 4096, 4096, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := enlarge(&c.b, c.want); got != c.got {
				t.Errorf("got %d, want %d", got, c.got)
			}
			if len(c.b.asked) != c.asks {
				t.Errorf("asked for %v, want %d times", c.b.asked, c.asks)
			}
		})
	}
}

func TestBufferWarning(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	warnBuffers(log, 212992, 8<<20, 8<<20, 8<<20)
	line := out.String()
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, receiveSetting+"=8388608") || !strings.Contains(line, "receive_buffer_bytes=212992") {
		t.Errorf("want one line that names the setting and its value: %s", line)
	}
	if strings.Contains(line, "send_buffer") {
		t.Errorf("complains of a buffer that is in order: %s", line)
	}
	out.Reset()
	warnBuffers(log, 1, 2, 3, 4)
	line = out.String()
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, receiveSetting+"=2") || !strings.Contains(line, sendSetting+"=4") {
		t.Errorf("want one line for both buffers: %s", line)
	}
}

// Sockets that share a WarnOnce warn once between them, and only if the
// kernel does refuse.
func TestBufferWarningIsShared(t *testing.T) {
	var out bytes.Buffer
	var once sync.Once
	o := Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), WarnOnce: &once, ReceiveBuffer: 1 << 30}
	refused := 0
	for range 3 {
		c, err := Listen("127.0.0.1:0", o)
		if err != nil {
			t.Fatal(err)
		}
		if receive, _ := c.Buffers(); receive < o.ReceiveBuffer {
			refused++
		}
		c.Close()
	}
	if lines := strings.Count(out.String(), "\n"); lines != min(refused, 1) {
		t.Errorf("%d refusals, %d lines: %s", refused, lines, &out)
	}
}
