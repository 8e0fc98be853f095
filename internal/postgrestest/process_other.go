//go:build unix && !linux

package postgrestest

import "syscall"

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
