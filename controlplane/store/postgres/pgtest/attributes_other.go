//go:build !linux

package pgtest

import "syscall"

// attributes runs a child as owner.
func attributes(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner}
}
