package main

import (
	"io/fs"
	"runtime"
	"runtime/debug"

	"github.com/tract-vcs/tract/objects"
)

// An import goes through memory as fast as it reads. What it needs for a file of some
// megabytes is taken at once, in large pieces where the system has such, and nothing of
// it is collected before the end: the two took a quarter of the time.
const (
	importNeeds = 10       // bytes for each of a file
	importWorth = 1 << 20  // the least file that is worth it
	importRoom  = 96 << 20 // most that is taken
	importPiece = 24 << 20 // at once
)

// The heap grows to three times what is in use, as an import makes much and keeps little
// of it; of a file for which there is room, to all of that first.
const (
	importGC   = 200
	importOnce = 100 * importRoom / (4 << 20)
)

// makeRoom makes the heap ready for a file.
func makeRoom(info fs.FileInfo) {
	percent, need := importGC, importNeeds*min(info.Size(), importRoom)
	if info.Mode().IsRegular() && info.Size() >= importWorth {
		debug.SetGCPercent(-1) // once is enough
		for left := min(need, importRoom); left > 0; left -= importPiece {
			objects.WillFill(make([]byte, min(left, importPiece)))
		}
		runtime.GC() // gives it to the heap
		if need <= importRoom {
			percent = importOnce
		}
	}
	debug.SetGCPercent(percent)
}
