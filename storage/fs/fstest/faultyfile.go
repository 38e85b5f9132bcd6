package fstest

import "github.com/felixlog/felix/storage/fs"

// faultyFile is an open file of a [Faults].
type faultyFile struct {
	fs.File
	f    *Faults
	name string
}

func (h *faultyFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = h.f.run(OpRead, func() (err error) {
		n, err = h.File.ReadAt(p, off)
		return err
	}, h.name)
	return n, err
}

func (h *faultyFile) WriteAt(p []byte, off int64) (n int, err error) {
	r, ok := h.f.meet(OpWrite, h.name)
	if ok && r.Gate != nil {
		r.Gate.wait()
	}
	if !ok || r.err() == nil {
		return h.write(p, off)
	}
	switch {
	case r.After:
		n, err = h.write(p, off)
	case r.Half:
		n, err = h.write(p[:len(p)/2], off)
	}
	if err == nil {
		err = injected(OpWrite, h.name, r.err())
	}
	return n, err
}

// write writes what the quota allows.
func (h *faultyFile) write(p []byte, off int64) (int, error) {
	size, err := h.File.Size()
	if err != nil {
		return 0, err
	}
	allowed := len(p)
	if grows := off + int64(len(p)) - size; grows > 0 {
		allowed -= int(min(int64(len(p)), grows-h.f.take(grows)))
	}
	n, err := h.File.WriteAt(p[:allowed], off)
	h.f.mu.Lock()
	h.f.written += int64(n)
	h.f.mu.Unlock()
	if err == nil && allowed < len(p) {
		err = injected(OpWrite, h.name, ErrNoSpace)
	}
	return n, err
}

func (h *faultyFile) Sync() error { return h.f.run(OpSync, h.File.Sync, h.name) }

func (h *faultyFile) Truncate(size int64) error {
	return h.f.run(OpTruncate, func() error {
		before, err := h.File.Size()
		if err != nil {
			return err
		}
		if err := h.File.Truncate(size); err != nil {
			return err
		}
		if before > size {
			h.f.giveBack(before - size)
		}
		return nil
	}, h.name)
}

func (h *faultyFile) Size() (size int64, err error) {
	err = h.f.run(OpSize, func() (err error) {
		size, err = h.File.Size()
		return err
	}, h.name)
	return size, err
}

func (h *faultyFile) Reserve(size int64) error {
	return h.f.run(OpReserve, func() error { return h.File.Reserve(size) }, h.name)
}

// Close closes the file also when it is to fail, as systems do.
func (h *faultyFile) Close() error {
	r, ok := h.f.meet(OpClose, h.name)
	if ok && r.Gate != nil {
		r.Gate.wait()
	}
	err := h.File.Close()
	if ok && r.err() != nil && err == nil {
		err = injected(OpClose, h.name, r.err())
	}
	return err
}
