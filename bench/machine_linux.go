package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// syncData makes what was written durable, and no more of the file's facts than
// reading it back needs.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// load is how many processes wanted a CPU in the last minute; 0 where it is not
// known.
func load() (one float64) {
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &one) // 0 says as much
	}
	return one
}

func cpuName() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // empty says as much
	_, after, _ := bytes.Cut(b, []byte("model name"))
	name, _, _ := strings.Cut(string(after), "\n")
	return strings.TrimLeft(name, "\t :")
}

// peak is the most memory this process had at once, in bytes. It is not what
// getrusage says: that counts what the parent had when it forked.
func peak() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(b, []byte("VmHWM:"))
	var kB int64
	_, _ = fmt.Sscan(string(after), &kB) // 0 says as much
	return kB << 10
}
