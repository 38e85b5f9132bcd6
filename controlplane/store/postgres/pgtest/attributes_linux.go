package pgtest

import "syscall"

// attributes runs a child as owner and ends it with the test binary, however
// that ends: SIGQUIT stops Postgres at once.
func attributes(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGQUIT}
}
