package dev

import "sync"

// maxSaid is how much of its output is kept, in bytes.
const maxSaid = 64 << 10

// An OutputTail keeps the end of what is written to it, 64 KiB: the standard
// error of a process that may have to be explained.
type OutputTail struct {
	mu sync.Mutex
	b  []byte
}

// Write never fails.
func (t *OutputTail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - maxSaid; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// String is what is kept.
func (t *OutputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

func (t *OutputTail) reset() {
	t.mu.Lock()
	t.b = t.b[:0]
	t.mu.Unlock()
}
