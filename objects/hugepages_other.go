//go:build !linux

package objects

// AdviseHugePages does nothing here.
func AdviseHugePages[T any]([]T) {}
