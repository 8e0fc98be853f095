package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

func newRecover(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "recover SRC NEW", Short: "Salvage the intact objects of a damaged store into a new one",
		Long: `Copy everything intact in SRC into the new store NEW. recover searches every page, even
pages that nothing refers to, and copies every object that matches its hash. SRC is the
folder of a store, or its file, and is not changed. NEW must not exist, and is created only
when the recovery is complete.

A branch or tag whose commit is intact still points to it. If the commit is lost, the last
intact position of the branch or tag is kept under refs/rescued/ (tract rescue list).`,
		Example: `  tract recover .tract .tract.new
  tract recover /mnt/old-disk/project saved && tract --dir saved fsck`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.recover(cmd.Context(), args[0], args[1]) },
	}
}

// recoveryJSON is the result of recover.
type recoveryJSON struct {
	Path     string        `json:"path"`
	Objects  int           `json:"objects"`
	Lost     int           `json:"lost"`
	Refs     int           `json:"refs"`
	Entries  int           `json:"log_entries"`
	Rescued  []rescuedJSON `json:"rescued"`
	Problems []damageJSON  `json:"problems"`
}

// rescuedJSON is a ref whose commit is lost, and the rescue ref of its last intact position.
type rescuedJSON struct {
	Ref  string `json:"ref"`
	Kept string `json:"kept,omitempty"`
}

func (a *app) recover(ctx context.Context, from, to string) error {
	if isFolder(from) {
		from = storeFolderOf(from)
	}
	root := from
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		root = filepath.Dir(from)
	}
	files, err := policyOfTrustedFolder(root)
	if err != nil {
		return err
	}
	step, end := a.startProgress("recovering")
	got, err := maintain.Recover(ctx, from, to, maintain.RecoverOptions{Files: files, Progress: step})
	end()
	switch {
	case errors.Is(err, objects.ErrExists):
		return withHint(err, "NEW must not exist")
	case errors.Is(err, objects.ErrNotFound):
		return withHint(err, "SRC must be the folder of a store, or its file")
	case err != nil:
		return err
	}
	beside, err := readHeadAndSettings(root, files, func(err error) error {
		a.info("not copied: %s", err)
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeHeadAndSettings(to, beside); err != nil {
		return err
	}
	return a.emit(newRecoveryJSON(got, to), func(p *format.Printer) {
		p.Line(fmt.Sprintf("Recovered into %s: %s, %s, %d moves of the ref log", to, count(got.Objects, "object"), count(got.Refs, "ref"), got.Entries))
		for _, ref := range slices.Sorted(maps.Keys(got.Rescued)) {
			if kept := got.Rescued[ref]; kept != "" {
				p.Line("The commit of " + ref + " is lost; its last intact position is " + kept)
				continue
			}
			p.Line("The commit of " + ref + " is lost, and so are all its earlier positions")
		}
		if got.Lost > 0 {
			p.Line(fmt.Sprintf("%s that are referred to could not be salvaged: tract --dir %s fsck lists them", count(got.Lost, "object"), shellQuote(to)))
		}
		if n := len(got.Damages); n > 0 {
			p.Line(fmt.Sprintf("%s in %s: tract --dir %s fsck explains it", count(n, "damage"), withoutSecrets(from), shellQuote(withoutSecrets(from))))
		}
	})
}

func newRecoveryJSON(r *maintain.Recovery, to string) recoveryJSON {
	rescued := func(ref string) rescuedJSON { return rescuedJSON{ref, r.Rescued[ref]} }
	problem := func(d objects.Damage) damageJSON { return newDamageJSON(maintain.Damage{Damage: d}) }
	return recoveryJSON{
		to, r.Objects, r.Lost, r.Refs, r.Entries,
		mapSlice(slices.Sorted(maps.Keys(r.Rescued)), rescued), mapSlice(r.Damages, problem),
	}
}
