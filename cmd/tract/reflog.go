package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

func newReflog(a *app) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "reflog [BRANCH]", Short: "Show the moves of a branch",
		Long: `Show the moves of a branch, newest first: the operations of tract op log that moved it. Any
command accepts the first column as a revision, and BRANCH@{n} names the same commit.`,
		Example: `  tract reflog
  tract reflog try-2 -n 20
  tract reset main@{1}`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reflog(cmd.Context(), limit, args) },
	}
	limitFlag(cmd, &limit, "show at most this many")
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

func newMoveJSON(e objects.LogEntry) moveJSON {
	return moveJSON{
		Seq: e.Seq, Time: e.Note.Time.UTC(), Author: e.Note.Author, Command: e.Note.Command, Hash: e.Hash, Group: e.Note.Group, Reverts: e.Note.Reverts,
		Refs: mapSlice(e.Refs, func(u objects.RefUpdate) moveRefJSON { return moveRefJSON{u.Name, u.Old, u.New} }),
	}
}

// reflog lists the moves of a ref; of all refs if HEAD is detached and no ref is named.
func (a *app) reflog(ctx context.Context, limit int, args []string) error {
	if _, err := a.open(ctx, false); err != nil {
		return err
	}
	name, err := a.branchOfFlagOrHead(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		name = args[0]
	}
	if name != "" && !strings.HasPrefix(name, "refs/") {
		name = refs.Heads + name
	}
	return a.opLog(ctx, name, limit)
}

func shortOrDashes(id objects.ID) string {
	if id.IsZero() {
		return "-------"
	}
	return id.Short()
}
