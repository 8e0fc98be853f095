package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/tract-vcs/tract/safefile"
)

// maxSidecar is the largest size in bytes of a copied file beside a store.
const maxSidecar = 1 << 20

// sidecarFiles are the files beside the store in its folder: HEAD and the settings.
var sidecarFiles = []string{"HEAD", "config.toml", ".gitignore"}

// readSidecars reads the files beside the store that exist. Unreadable ones are passed to failed
// and skipped, unless it returns an error.
func readSidecars(root string, files safefile.Policy, failed func(error) error) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, name := range sidecarFiles {
		b, err := files.Read(filepath.Join(root, name), maxSidecar)
		switch {
		case err == nil:
			found[name] = b
		case errors.Is(err, fs.ErrNotExist):
		default:
			if err := failed(err); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// writeSidecars writes what readSidecars has read into the folder of another store.
func writeSidecars(root string, found map[string][]byte) error {
	for _, name := range sidecarFiles {
		if b, ok := found[name]; ok {
			if err := safefile.Write(filepath.Join(root, name), b, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
