package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/tract-vcs/tract/safefile"
)

// maxCopiedFile is the largest size in bytes of a file of headAndSettingsFiles.
const maxCopiedFile = 1 << 20

// headAndSettingsFiles are the files in the folder of a store that backup and recover copy beside
// the objects: HEAD and the settings.
var headAndSettingsFiles = []string{"HEAD", "config.toml", ".gitignore"}

// readHeadAndSettings reads HEAD and the settings in the folder of a store, by their names, if they
// exist. For one that cannot be read it calls failed, and stops with the error that failed returns.
func readHeadAndSettings(root string, files safefile.Policy, failed func(error) error) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, name := range headAndSettingsFiles {
		b, err := files.Read(filepath.Join(root, name), maxCopiedFile)
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

// writeHeadAndSettings writes what readHeadAndSettings has read into the folder of another store.
func writeHeadAndSettings(root string, found map[string][]byte) error {
	for _, name := range headAndSettingsFiles {
		if b, ok := found[name]; ok {
			if err := safefile.Write(filepath.Join(root, name), b, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
