package main

import (
	"context"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// refDeletion is refs of a folder that are to be removed, all of them or none, as one
// operation.
type refDeletion struct {
	folder string
	names  []string
	dry    bool
}

// verb is what becomes of the refs, in the words of a command: drop, dropped.
func (d *refDeletion) verb(verb, past string) string {
	if d.dry {
		return "would " + verb
	}
	return past
}

// run removes the refs and tells where they were.
func (d *refDeletion) run(ctx context.Context, a *app, command string) ([]tract.RefInfo, error) {
	repo, err := a.open(ctx, !d.dry)
	if err != nil {
		return nil, err
	}
	var gone []tract.RefInfo
	var full []string
	for _, name := range d.names {
		ref, err := objects.ReadRef(ctx, repo.Store(), d.folder+name)
		if err == nil && ref.Target.IsZero() {
			err = refs.None(d.folder + name)
		}
		if err != nil {
			return nil, err
		}
		gone, full = append(gone, tract.RefInfo{Name: name, Tip: ref.Target}), append(full, ref.Name)
	}
	if d.dry {
		return gone, nil
	}
	return gone, repo.DeleteRefs(tract.AsOperation(ctx, command), full)
}

// printDeleted tells a program what became of refs: one object, or a list when several
// were named.
func (a *app) printDeleted(member, what string, gone []tract.RefInfo) error {
	list := make([]any, len(gone))
	for i, ref := range gone {
		list[i] = map[string]any{member: ref.Name, "target": ref.Tip, "done": what}
	}
	if len(list) == 1 {
		return format.Encode(a.out, list[0])
	}
	return format.Encode(a.out, list)
}
