//go:build !linux

package hugepage

func advise(uintptr, uintptr) {}
