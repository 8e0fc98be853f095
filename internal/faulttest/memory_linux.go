package faulttest

import (
	"os"
	"syscall"
)

// memoryNeeded is how many bytes the file system in memory must have free.
const memoryNeeded = 1 << 30

// UseMemory makes the folder for temporary files of this process and its children a new one in
// memory, where a sync costs nothing, if the system has a file system in memory with enough
// room. In make torture the tests use the disk. remove removes the folder.
func UseMemory() (remove func()) {
	const shared = "/dev/shm"
	var free syscall.Statfs_t
	if err := syscall.Statfs(shared, &free); err != nil || free.Bavail*uint64(free.Bsize) < memoryNeeded || os.Getenv("TRACT_TORTURE") != "" {
		return func() {}
	}
	dir, err := os.MkdirTemp(shared, "tract-test-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // a test may run as another user
	}
	if err != nil || os.Setenv("TMPDIR", dir) != nil {
		return func() {}
	}
	return func() { _ = os.RemoveAll(dir) }
}
