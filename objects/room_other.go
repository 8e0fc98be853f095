//go:build !linux

package objects

// WillFill tells the system that all of a large list will be written soon, where it
// wants to know.
func WillFill[T any]([]T) {}
