//go:build !linux

package faulttest

// MemoryDir returns "": where this system has a file system in memory is not known.
func MemoryDir() string { return "" }
