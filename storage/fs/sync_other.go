//go:build !linux

package fs

// Sync is a full sync; on macOS that reaches the platters.
func (o *osFile) Sync() error { return o.f.Sync() }

// Reserve is not offered on this system.
func (o *osFile) Reserve(int64) error { return ErrUnsupported }
