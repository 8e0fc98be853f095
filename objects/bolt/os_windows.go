package bolt

import "io/fs"

// renamesOpen: a file that is open keeps its name.
const renamesOpen = false

func isUnlinked(fs.FileInfo) bool { return false }
