//go:build !linux

package main

import "os"

// syncData makes what was written durable.
func syncData(f *os.File) error { return f.Sync() }

// load is not known here.
func load() float64 { return 0 }

func cpuName() string { return "" }

// peak is not known here.
func peak() int64 { return 0 }
