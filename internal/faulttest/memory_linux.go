package faulttest

import (
	"os"
	"syscall"
)

// memoryNeeded is how many bytes the file system in memory must have free.
const memoryNeeded = 1 << 30

// MemoryDir creates a folder in memory for temporary files, where a sync costs nothing. It
// returns "" if the system has no file system in memory with enough room.
func MemoryDir() string {
	const shared = "/dev/shm"
	var free syscall.Statfs_t
	if err := syscall.Statfs(shared, &free); err != nil || free.Bavail*uint64(free.Bsize) < memoryNeeded {
		return ""
	}
	dir, err := os.MkdirTemp(shared, "tract-test-")
	if err != nil {
		return ""
	}
	if err := os.Chmod(dir, 0o711); err != nil { // a test may run as another user
		return ""
	}
	return dir
}
