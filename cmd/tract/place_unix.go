//go:build unix

package main

import (
	"os"
	"syscall"
)

// owner is the user that a folder belongs to, where that can be known.
func owner(dir string) (uid uint32, known bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return s.Uid, true
}
