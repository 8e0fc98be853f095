package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

var _ = register("reflog", newReflog)

type reflogOptions struct {
	limit int
	all   bool
}

func newReflog(a *app) *cobra.Command {
	o := &reflogOptions{}
	cmd := &cobra.Command{
		Use: "reflog [BRANCH]", Short: "Show where a branch was", GroupID: groupShape,
		Long: `Show how a branch moved, newest first. The first column can be given to any
command, and BRANCH@{n} says the same.`,
		Example: `  tract reflog
  tract reflog --all -n 20
  tract reset main@{1}`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reflog(cmd, o, args) },
	}
	cmd.Flags().IntVarP(&o.limit, "max-count", "n", 0, "show so many")
	cmd.Flags().BoolVar(&o.all, "all", false, "the moves of all refs")
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

// moveJSON is one entry of the ref log.
type moveJSON struct {
	Seq     uint64        `json:"seq"`
	Time    time.Time     `json:"time"`
	Author  string        `json:"author,omitempty"`
	Command string        `json:"command"`
	Refs    []moveRefJSON `json:"refs"`
	Hash    objects.ID    `json:"hash"`
	Group   objects.Group `json:"group,omitzero"`
	Reverts objects.Group `json:"reverts,omitzero"`
}

type moveRefJSON struct {
	Name string     `json:"name"`
	Old  objects.ID `json:"old,omitzero"`
	New  objects.ID `json:"new,omitzero"`
}

func moveOf(e objects.LogEntry) moveJSON {
	m := moveJSON{Seq: e.Seq, Time: e.Note.Time.UTC(), Author: e.Note.Author, Command: e.Note.Command, Hash: e.Hash, Group: e.Note.Group, Reverts: e.Note.Reverts}
	for _, u := range e.Refs {
		m.Refs = append(m.Refs, moveRefJSON(u))
	}
	return m
}

func (a *app) reflog(cmd *cobra.Command, o *reflogOptions, args []string) error {
	ctx := cmd.Context()
	if o.limit < 0 {
		return usage(cmd, "-n %d: want a number of moves", o.limit)
	}
	ref, err := a.reflogRef(ctx, o, args)
	if err != nil {
		return err
	}
	moves, err := a.repo.Moves(ctx, ref, o.limit)
	if err != nil {
		return err
	}
	if len(moves) == 0 && ref != "" {
		return &refs.UnknownError{Rev: refs.Name(ref), Why: "no ref of that name was ever moved"}
	}
	if a.json {
		list := []moveJSON{}
		for _, e := range moves {
			list = append(list, moveOf(e))
		}
		return format.Encode(a.out, list)
	}
	var rows [][]string
	for n, e := range moves {
		for _, u := range e.Refs {
			if ref != "" && u.Name != ref {
				continue
			}
			at := fmt.Sprintf("%s@{%d}", refs.Name(u.Name), n)
			if ref == "" {
				at = refs.Name(u.Name)
			}
			rows = append(rows, []string{shortOrGone(u.New), at, e.Note.Time.Local().Format(time.DateTime), e.Note.Author, e.Note.Command})
		}
	}
	return a.page(func(p *format.Printer) error {
		p.Table(rows)
		return nil
	})
}

// reflogRef is the ref whose moves are asked for; empty: all.
func (a *app) reflogRef(ctx context.Context, o *reflogOptions, args []string) (string, error) {
	if _, err := a.open(ctx, false); err != nil || o.all {
		return "", err
	}
	name, err := a.branchName()
	if len(args) == 1 {
		name = args[0]
	}
	switch {
	case err != nil || name == "":
		return "", err
	case strings.HasPrefix(name, "refs/"):
		return name, nil
	}
	return refs.Heads + name, nil
}

func shortOrGone(id objects.ID) string {
	if id.IsZero() {
		return "-------"
	}
	return id.Short()
}
