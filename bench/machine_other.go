//go:build !linux

package main

import (
	"os"
	"time"
)

// syncData makes written data durable.
func syncData(f *os.File) error { return f.Sync() }

// load is unknown here.
func load() float64 { return 0 }

func cpuName() string { return "" }

// peak is unknown here.
func peak() int64 { return 0 }

// peakOf is unknown here.
func peakOf(int) float64 { return 0 }

// processorTime is unknown here.
func processorTime() time.Duration { return 0 }
