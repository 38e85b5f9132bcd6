package fstest

import "syscall"

// FlipBit inverts one bit of a file, on the disk as in memory: rot. Bit 0 is
// the lowest of the first byte.
func (m *Mem) FlipBit(name string, bit int64) error {
	return m.damage(name, func(f *file) error {
		at := bit / 8
		if bit < 0 || at >= f.size {
			return syscall.EINVAL
		}
		p := f.page(int(at / pageSize))
		p.now[at%pageSize] ^= 1 << (bit % 8)
		p.disk[at%pageSize] ^= 1 << (bit % 8)
		return nil
	})
}

// Cut shortens a file to size bytes, on the disk too, and leaves the rest of it
// durable: a bad copy.
func (m *Mem) Cut(name string, size int64) error {
	return m.damage(name, func(f *file) error {
		if size < 0 || size > f.size {
			return syscall.EINVAL
		}
		f.truncate(size)
		f.sync()
		return nil
	})
}

// Overwrite writes into a file, on the disk too, and leaves all of it durable.
func (m *Mem) Overwrite(name string, at int64, b []byte) error {
	return m.damage(name, func(f *file) error {
		if at < 0 {
			return syscall.EINVAL
		}
		f.writeAt(b, at, func() bool { return false })
		f.sync()
		return nil
	})
}

func (m *Mem) damage(name string, do func(*file) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.file("damage", name)
	if err != nil {
		return err
	}
	if err := do(f); err != nil {
		return failed("damage", name, err)
	}
	return nil
}

// Drop removes a file, for good: a file lost.
func (m *Mem) Drop(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("drop", name)
	if err != nil {
		return err
	}
	if _, ok := d.names[base].(*file); !ok {
		return failed("drop", name, syscall.ENOENT)
	}
	delete(d.names, base)
	delete(d.durable, base)
	for i := range d.changes {
		if d.changes[i].set == base {
			d.changes[i].set = "" // nor can a crash bring it back
		}
	}
	return nil
}
