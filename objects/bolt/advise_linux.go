package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseWillNeed tells the system that a part of a file will be read soon, unless its ends
// are in memory: then the rest mostly is too, and the advice takes long, page by page.
func adviseWillNeed(f *os.File, at, n int64) {
	if !inMemory(f, at) || !inMemory(f, at+n-1) {
		_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
	}
}

// inMemory reports whether a byte of a file can be read without the disk. Beyond the end
// there is nothing to read.
func inMemory(f *os.File, at int64) bool {
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{{0}}, at, unix.RWF_NOWAIT)
	return err == nil && n <= 1
}
