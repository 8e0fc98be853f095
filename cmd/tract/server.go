package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// isServer reports whether an address is the URL of a store on a server, which has no folder.
func isServer(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

// findFolderForServerStore finds the folder that has HEAD and the settings for a store on a server:
// explicitDir if it is not empty, one here or above that holds no store itself, or one of the user's
// own for each store.
func (a *app) findFolderForServerStore(address, explicitDir string) (*storeLocation, error) {
	p := &storeLocation{url: address, server: withoutSecrets(address)}
	if explicitDir != "" {
		p.root = storeFolderOf(explicitDir)
	} else if here, err := os.Getwd(); err == nil {
		if p.root, err = findStoreFolderUpward(here); err != nil {
			return nil, err
		}
	}
	if explicitDir == "" && (p.root == "" || hasDatabase(p.root)) {
		p.root = ""
		if own := personalStore(); own != "" {
			p.root = filepath.Join(own, "servers", objects.Hash([]byte(p.server)).String()[:12])
		}
	}
	var err error
	p.files, err = policyOfTrustedFolder(p.root)
	return p, err
}

// hasDatabase reports whether a folder holds an embedded store.
func hasDatabase(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "*.db")) // the error is of the pattern
	return len(found) > 0
}

// withoutSecrets returns an address for messages: of a server's URL, only the user, the hosts, the
// database and the name of the store.
func withoutSecrets(address string) string {
	if !isServer(address) {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, ":")
		return scheme + ":"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	query := url.Values{}
	for _, name := range []string{"host", "port", "repo"} {
		if v := u.Query().Get(name); v != "" {
			query.Set(name, v)
		}
	}
	shown.RawQuery = query.Encode()
	return strings.ReplaceAll(shown.String(), "%2F", "/")
}

// displayName returns the URL or the folder of the store, for messages.
func (p *storeLocation) displayName() string {
	if p.server != "" {
		return p.server
	}
	return p.url
}

// makeFolderIfServer creates the folder for HEAD and the settings of a store on a server. Of
// another store it creates nothing.
func (p *storeLocation) makeFolderIfServer() error {
	if p.server == "" || p.root == "" {
		return nil
	}
	err := os.MkdirAll(p.root, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}
