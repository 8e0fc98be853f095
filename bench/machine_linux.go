package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// syncData makes written data durable with fdatasync.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// load returns the load average of the last minute, or 0 where it is unknown.
func load() (one float64) {
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &one) // leaves 0
	}
	return one
}

func cpuName() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // leaves it empty
	_, after, _ := bytes.Cut(b, []byte("model name"))
	name, _, _ := strings.Cut(string(after), "\n")
	return strings.TrimLeft(name, "\t :")
}

// peak returns the peak memory of this process in bytes. getrusage would include the
// memory that the parent had at the fork.
func peak() int64 { return peakIn("/proc/self/status") }

// peakIn reads the peak memory in bytes from a status file; 0: unknown.
func peakIn(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(b, []byte("VmHWM:"))
	var kB int64
	_, _ = fmt.Sscan(string(after), &kB) // leaves 0
	return kB << 10
}

// peakOf returns the peak memory of a process in MB, or 0 when it has ended.
func peakOf(pid int) float64 { return float64(peakIn(fmt.Sprintf("/proc/%d/status", pid))) / 1e6 }

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
