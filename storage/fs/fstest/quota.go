package fstest

// SetQuota lets files grow by bytes more from now on; a write past that puts
// in place what fits and fails with ErrNoSpace. Removing and shortening files
// gives room back.
func (f *Faults) SetQuota(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited, f.left = true, bytes
}

// RaiseQuota adds to the quota, as if somebody had made room.
func (f *Faults) RaiseQuota(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left += bytes
}

// LiftQuota ends the quota.
func (f *Faults) LiftQuota() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited = false
}

// Quota is what is left, in bytes.
func (f *Faults) Quota() (left int64, limited bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.left), f.limited
}

// take asks for room to grow by want bytes and gets as much as is left.
func (f *Faults) take(want int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.limited || want <= 0 {
		return want
	}
	got := min(want, max(0, f.left))
	f.left -= got
	return got
}

func (f *Faults) giveBack(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left += bytes
}

// freeing runs what makes the file at name go.
func (f *Faults) freeing(name string, do func() error) error {
	info, statErr := f.inner.Stat(name)
	err := do()
	if err == nil && statErr == nil && !info.Dir {
		f.giveBack(info.Size)
	}
	return err
}
