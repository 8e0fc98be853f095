package bolt

import "io/fs"

// renamesOpen: a file that is open keeps its name.
const renamesOpen = false

func nameless(fs.FileInfo) bool { return false }
