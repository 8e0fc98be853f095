package main

import (
	"io/fs"
	"runtime"
	"runtime/debug"

	"github.com/tract-vcs/tract/objects"
)

// An import goes through memory as fast as it reads. What it needs for a file of some
// megabytes is taken at once, in large pieces where the system has such, which took a
// quarter of the time. It is half of what it goes through: once, in the middle, what is
// no more in use is collected and used again. That costs less than fresh memory, and far
// less where the system itself has to ask for that.
const (
	importNeeds = 4        // bytes for each of a file
	importBase  = 8 << 20  // bytes for any
	importWorth = 1 << 20  // the least file that is worth it
	importRoom  = 64 << 20 // most that is taken
	importPiece = 16 << 20 // at once
)

// The heap grows to three times what is in use, as an import makes much and keeps little
// of it; for a file for which there is room, to three quarters of that first, if that is
// worth a collection.
const (
	importGC    = 200
	importFirst = 300
	importAtAll = 4 << 20 // what the heap grows to first at 100 %
)

// makeRoom makes the heap ready for a file.
func makeRoom(info fs.FileInfo) {
	percent, need := importGC, importNeeds*min(info.Size(), importRoom)+importBase
	if info.Mode().IsRegular() && info.Size() >= importWorth {
		debug.SetGCPercent(-1) // once is enough
		for left := min(need, importRoom); left > 0; left -= importPiece {
			objects.WillFill(make([]byte, min(left, importPiece)))
		}
		runtime.GC() // gives it to the heap
		if need <= importRoom {
			percent = max(importFirst, int(100*need*3/4/importAtAll))
		}
	}
	debug.SetGCPercent(percent)
}
