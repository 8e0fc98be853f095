package postgrestest

import "syscall"

// processAttributes ends a server whose test was killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
}
