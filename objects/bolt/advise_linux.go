package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseWillNeed tells the system that a part of a file will be read soon.
func adviseWillNeed(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
}
