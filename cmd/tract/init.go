package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

func newInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "init [DIR]", Short: "Create a store",
		Long: `Create a store in the folder ` + folder + ` of DIR or of the current folder. Only you can
read it (mode 0700), and git ignores it. Running init again is harmless.

With --store URL, or TRACT_STORE, the store is created in a PostgreSQL database, and the
folder contains only HEAD and the settings: see docs/postgres.md.`,
		Example: `  tract init
  tract init --store 'postgres://db.example/agents?repo=support'
  tract init -b research ~/agents`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.init(cmd.Context(), args) },
	}
}

func (a *app) init(ctx context.Context, args []string) error {
	p, err := a.locationForInit(args)
	if err != nil {
		return err
	}
	name := a.branch
	if name == "" {
		name = firstBranch
	}
	if p.root != "" {
		if err := os.MkdirAll(filepath.Dir(p.root), 0o777); err != nil {
			return err
		}
		if err := p.makeFolderIfServer(); err != nil {
			return err
		}
	}
	repo, err := tract.Open(ctx, p.url, tract.OpenOptions{Create: true, Files: p.files})
	if p.server != "" && errors.Is(err, objects.ErrNotFound) {
		return withHint(err, "createdb creates the database; tract init creates its tables")
	}
	if err != nil {
		return a.withStoreURLHint(err)
	}
	a.location, a.repo = p, repo
	again := true
	if p.root != "" {
		if again, err = a.writeStoreFiles(p.root, name); err != nil {
			return err
		}
	}
	h, err := a.head()
	if err != nil {
		return err
	}
	verb := "Created a store in"
	if again {
		verb = "Store already exists in"
	}
	return a.emit(map[string]any{"path": p.root, "store": p.displayName(), "branch": h.branch, "again": again}, func(out *format.Printer) {
		out.Line(verb + " " + firstNonEmpty(p.server, p.root, p.url) + " (branch " + h.String() + ")")
	})
}

// locationForInit returns the location of the store that init creates.
func (a *app) locationForInit(args []string) (*storeLocation, error) {
	switch {
	case isServer(a.storeURLFromFlagOrEnv()):
		return a.locationOfNewServerStore(args)
	case a.storeURLFromFlagOrEnv() != "":
		return localLocation(a.storeURLFromFlagOrEnv())
	case len(args) == 0 && a.dir == "" && os.Getenv("TRACT_DIR") == "":
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		return localLocation(filepath.Join(here, folder))
	case len(args) == 0:
		return localLocation(storeFolderOf(firstNonEmpty(a.dir, os.Getenv("TRACT_DIR"))))
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return nil, err
	}
	return localLocation(filepath.Join(dir, folder))
}

// locationOfNewServerStore returns the location of a store on a server. HEAD and the settings are
// in the folder .tract of args[0] or of the current folder.
func (a *app) locationOfNewServerStore(args []string) (*storeLocation, error) {
	dir := firstNonEmpty(a.dir, os.Getenv("TRACT_DIR"))
	if len(args) > 0 {
		dir = args[0]
	}
	if dir == "" {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		if root := filepath.Join(here, folder); !hasDatabase(root) {
			dir = root
		}
	}
	return a.findFolderForServerStore(a.storeURLFromFlagOrEnv(), dir)
}

// writeStoreFiles writes HEAD and .gitignore and reports whether HEAD existed.
func (a *app) writeStoreFiles(root, branch string) (headExisted bool, err error) {
	ignore := filepath.Join(root, ".gitignore")
	if _, err := os.Lstat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := safefile.Write(ignore, []byte("*\n"), nil); err != nil {
			return false, err
		}
	}
	_, err = os.Lstat(filepath.Join(root, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, a.setHead(head{branch: branch})
	}
	return true, err
}
