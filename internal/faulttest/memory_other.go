//go:build !linux

package faulttest

// UseMemory does nothing: where this system has a file system in memory is not known.
func UseMemory() (remove func()) { return func() {} }
