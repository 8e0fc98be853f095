//go:build !linux

package bolt

import "os"

// adviseWillNeed does nothing: the system reads ahead by itself.
func adviseWillNeed(*os.File, int64, int64) {}
