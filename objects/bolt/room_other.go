//go:build !linux

package bolt

// largeRoom is memory for n bytes, empty.
func largeRoom(n int) []byte { return make([]byte, 0, n) }
