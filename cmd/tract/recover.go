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
		Use: "recover SRC NEW", Short: "Make a new store of what is whole in a damaged one",
		Long: `Make the new store NEW of everything that is whole in SRC, however damaged that
is: it looks into every page, also those to which nothing leads any more, and
takes what hashes to its id. SRC is a folder with a store, or its file, and stays
as it is. NEW must not be there, and is only when all is done.

A branch or tag whose commit is whole is where it was. For one whose commit is
lost, what it was before is under refs/rescued/ (tract rescue list).`,
		Example: `  tract recover .tract .tract.new
  tract recover /mnt/old-disk/project saved && tract --dir saved fsck`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.recover(cmd.Context(), args[0], args[1]) },
	}
}

// recoveryJSON is what recover saved.
type recoveryJSON struct {
	Path     string        `json:"path"`
	Objects  int           `json:"objects"`
	Lost     int           `json:"lost"`
	Refs     int           `json:"refs"`
	Entries  int           `json:"log_entries"`
	Rescued  []rescuedJSON `json:"rescued"`
	Problems []damageJSON  `json:"problems"`
}

// rescuedJSON is a ref whose commit is lost, and the name of what was saved of it.
type rescuedJSON struct {
	Ref  string `json:"ref"`
	Kept string `json:"kept,omitempty"`
}

func (a *app) recover(ctx context.Context, from, to string) error {
	if isFolder(from) {
		from = storeIn(from)
	}
	root := from
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		root = filepath.Dir(from)
	}
	files, err := policyFor(root)
	if err != nil {
		return err
	}
	step, end := a.progress("recovering")
	got, err := maintain.Recover(ctx, from, to, maintain.RecoverOptions{Files: files, Progress: step})
	end()
	switch {
	case errors.Is(err, objects.ErrExists):
		return withHint(err, "give a NEW that is not there yet")
	case errors.Is(err, objects.ErrNotFound):
		return withHint(err, "give SRC as a folder with a store in it, or as the file of one")
	case err != nil:
		return err
	}
	beside, err := readSidecars(root, files, func(err error) error {
		a.info("left out: %s", err)
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeSidecars(to, beside); err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, recoveryOf(got, to))
	}
	p := a.printer()
	p.Line(fmt.Sprintf("Recovered into %s: %s, %s, %d moves of the ref log", to, count(uint64(got.Objects), "object"), count(uint64(got.Refs), "ref"), got.Entries))
	for _, ref := range slices.Sorted(maps.Keys(got.Rescued)) {
		if kept := got.Rescued[ref]; kept != "" {
			p.Line("The commit of " + ref + " is lost; what it was before is " + kept)
			continue
		}
		p.Line("The commit of " + ref + " is lost, and all that it was before")
	}
	if got.Lost > 0 {
		p.Line(fmt.Sprintf("%s that something leads to could not be saved: tract --dir %s fsck says what they were", count(uint64(got.Lost), "object"), shellQuote(to)))
	}
	if n := len(got.Damages); n > 0 {
		p.Line(fmt.Sprintf("%s in %s: tract --dir %s fsck says what it means", count(uint64(n), "damage"), from, shellQuote(from)))
	}
	return p.Err()
}

func recoveryOf(r *maintain.Recovery, to string) recoveryJSON {
	j := recoveryJSON{to, r.Objects, r.Lost, r.Refs, r.Entries, []rescuedJSON{}, []damageJSON{}}
	for _, ref := range slices.Sorted(maps.Keys(r.Rescued)) {
		j.Rescued = append(j.Rescued, rescuedJSON{ref, r.Rescued[ref]})
	}
	for _, d := range r.Damages {
		j.Problems = append(j.Problems, damageOf(maintain.Damage{Damage: d}))
	}
	return j
}
