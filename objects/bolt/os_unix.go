//go:build !windows

package bolt

import (
	"io/fs"
	"syscall"
)

// renamesOpen tells that a file that is open can lose its name to another.
const renamesOpen = true

// isUnlinked reports whether a file has no name any more.
func isUnlinked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}
