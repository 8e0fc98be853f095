package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// folder is the name of the folder that holds a store.
const folder = ".tract"

// storeLocation is the location of the store that this process uses.
type storeLocation struct {
	url      string
	server   string          // of a store on a server: the URL without secrets
	root     string          // the folder of HEAD and config.toml; empty: there is none
	files    safefile.Policy // policy for the files in root
	personal bool            // the personal store is used, because no other store was named or found
}

// findStore finds the store: --store, --dir, TRACT_STORE, TRACT_DIR, a parent folder, or the
// personal one.
func (a *app) findStore() (*storeLocation, error) {
	if a.location != nil {
		return a.location, nil
	}
	p, err := a.searchStore()
	if err != nil {
		return nil, err
	}
	a.location = p
	return p, nil
}

func (a *app) searchStore() (*storeLocation, error) {
	dir := firstNonEmpty(a.dir, os.Getenv("TRACT_DIR"))
	address := a.storeURLFromFlagOrEnv()
	switch {
	case isServer(address):
		return a.findFolderForServerStore(address, dir)
	case address != "":
		return localLocation(address)
	case dir != "":
		return localLocation(storeFolderOf(dir))
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, withHint(fmt.Errorf("find the store: the folder you are in: %w", err), "cd to an existing folder, or name the store with --dir")
	}
	if found, err := findStoreFolderUpward(here); err != nil {
		return nil, err
	} else if found != "" {
		return localLocation(found)
	}
	v, err := settings.Load(settings.Sources{Global: userSettings(), Lookup: os.LookupEnv})
	if err != nil {
		return nil, err
	}
	if own := personalStore(); own != "" && v.Bool("core.personal") {
		p, err := localLocation(own)
		if err == nil {
			p.personal = true
		}
		return p, err
	}
	err = fmt.Errorf("find the store: no %s in %s or above: %w", folder, here, objects.ErrNotFound)
	return nil, withHint(err, "tract init creates a store here")
}

// storeURLFromFlagOrEnv returns the URL of --store or TRACT_STORE; empty if a folder is named, or
// nothing.
func (a *app) storeURLFromFlagOrEnv() string {
	if a.url != "" || a.dir != "" {
		return a.url
	}
	return os.Getenv("TRACT_STORE")
}

// localLocation returns the location of a store on this machine: of a folder, as a path or with
// bolt:, or of a URL with another scheme, which has no folder. It refuses a file, and a folder that
// is not safe to use, before reading anything in it.
func localLocation(pathOrURL string) (*storeLocation, error) {
	p := &storeLocation{url: pathOrURL}
	if scheme, rest, ok := strings.Cut(pathOrURL, ":"); !ok || len(scheme) == 1 {
		p.root = pathOrURL
	} else if scheme == "bolt" {
		p.root = rest
	}
	if info, err := os.Stat(p.root); err == nil && !info.IsDir() {
		err = fmt.Errorf("find the store: %s is a file: %w", p.root, syscall.ENOTDIR)
		return nil, withHint(err, "name the folder of a store, such as %s", shellQuote(folder))
	}
	var err error
	p.files, err = policyOfTrustedFolder(p.root)
	return p, err
}

// storeFolderOf returns the folder of the store that --dir names: dir itself, or the folder .tract
// in it.
func storeFolderOf(dir string) string {
	inner := filepath.Join(dir, folder)
	if filepath.Base(filepath.Clean(dir)) == folder || !isFolder(inner) && isStoreFolder(dir) {
		return dir
	}
	return inner
}

// isStoreFolder reports whether a folder looks like a store.
func isStoreFolder(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil || hasDatabase(dir)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// findStoreFolderUpward finds the store of a folder or of a parent with the same owner. A .tract
// that is not a folder, such as a broken link, is an error: skipping it would use another store.
func findStoreFolderUpward(dir string) (string, error) {
	first, known := ownerOf(dir)
	for {
		if own, ok := ownerOf(dir); known && ok && own != first {
			return "", nil
		}
		found := filepath.Join(dir, folder)
		if isFolder(found) {
			return found, nil
		}
		if _, err := os.Lstat(found); err == nil {
			return "", withHint(fmt.Errorf("find the store: %s is not a folder", found), "remove it, or name the store with --dir")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

// ownerOf returns the user who owns a folder, if the system reports it.
func ownerOf(dir string) (uid int, known bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	return safefile.Owner(info)
}

// personalStore returns the folder of the user's personal store, which is used if no parent folder
// has a store.
func personalStore() string {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "tract")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "tract")
	}
	return ""
}
