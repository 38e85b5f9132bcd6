package fstest

import (
	"io"
	"io/fs"
	"syscall"
)

// handle is an open file.
type handle struct {
	m        *Mem
	f        *file
	name     string
	writable bool
	closed   bool // under m.mu
}

// use checks that the handle serves; m.mu is held.
func (h *handle) use(op string, write bool) error {
	switch {
	case h.m.dead:
		return failed(op, h.name, ErrDead)
	case h.closed:
		return failed(op, h.name, fs.ErrClosed)
	case write && !h.writable:
		return failed(op, h.name, syscall.EBADF)
	}
	return nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.m.mu.RLock()
	defer h.m.mu.RUnlock()
	if err := h.use("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, failed("read", h.name, syscall.EINVAL)
	}
	n := h.f.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.use("write", true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, failed("write", h.name, syscall.EINVAL)
	}
	if len(p) > 0 {
		h.f.writeAt(p, off, func() bool { return h.m.rng.IntN(8) == 0 })
	}
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.use("truncate", true); err != nil {
		return err
	}
	if size < 0 {
		return failed("truncate", h.name, syscall.EINVAL)
	}
	h.f.truncate(size)
	return nil
}

func (h *handle) Sync() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.use("sync", false); err != nil {
		return err
	}
	h.f.sync()
	return nil
}

func (h *handle) Size() (int64, error) {
	h.m.mu.RLock()
	defer h.m.mu.RUnlock()
	if err := h.use("size", false); err != nil {
		return 0, err
	}
	return h.f.size, nil
}

// Reserve has nothing to set aside.
func (h *handle) Reserve(int64) error {
	h.m.mu.RLock()
	defer h.m.mu.RUnlock()
	return h.use("reserve", true)
}

func (h *handle) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.closed {
		return failed("close", h.name, fs.ErrClosed)
	}
	h.closed = true
	return nil
}
