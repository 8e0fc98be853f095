package faulttest

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// filterEnv is set for the commands that Run starts.
const filterEnv = "TRACT_FAULTTEST_FILTER"

// followedCalls are the system calls that decode looks at, and openat.
var followedCalls = []uint32{
	syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_FTRUNCATE, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC,
	syscall.SYS_MKDIRAT, syscall.SYS_UNLINKAT, syscall.SYS_RENAMEAT, sysRenameat2, syscall.SYS_LINKAT,
	syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_FALLOCATE, syscall.SYS_SENDFILE, sysCopyFileRange,
}

// opensForChange are the flags of an openat that creates a file or opens one for writing.
const opensForChange = syscall.O_CREAT | syscall.O_WRONLY | syscall.O_RDWR | syscall.O_TRUNC

// Of seccomp, what package syscall has no name for.
const (
	setFilter    = 1 // SECCOMP_SET_MODE_FILTER
	ofAllThreads = 1 // SECCOMP_FILTER_FLAG_TSYNC
	noNewPrivs   = 38
	sysSeccomp   = 317
	retTrace     = 0x7ff00000
	retAllow     = 0x7fff0000
)

// FilterCalls tells the system, in a process that Run has started, to stop only at calls that
// Run looks at; most of the others are those of Go's scheduler. The processes that
// this one starts cannot make those calls. A program that does not call it is followed all
// the same, several times slower.
func FilterCalls() {
	if os.Getenv(filterEnv) == "" {
		return
	}
	const load, jumpIfEqual, jumpIfSet, ret = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS,
		syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, syscall.BPF_RET | syscall.BPF_K
	code := []syscall.SockFilter{{Code: load, K: 0}} // the number of the call
	n := len(followedCalls)
	for i, call := range followedCalls {
		code = append(code, syscall.SockFilter{Code: jumpIfEqual, K: call, Jt: uint8(n - i + 3)})
	}
	code = append(
		code,
		syscall.SockFilter{Code: jumpIfEqual, K: syscall.SYS_OPENAT, Jf: 2},
		syscall.SockFilter{Code: load, K: 16 + 2*8}, // the third argument
		syscall.SockFilter{Code: jumpIfSet, K: opensForChange, Jt: 1},
		syscall.SockFilter{Code: ret, K: retAllow},
		syscall.SockFilter{Code: ret, K: retTrace},
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// If either call fails, Run stops at every call.
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return
	}
	program := syscall.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, _ = syscall.RawSyscall(sysSeccomp, setFilter, ofAllThreads, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
}
