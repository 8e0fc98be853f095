package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// refDeletion deletes refs below one prefix, all or none, as one operation.
type refDeletion struct {
	folder, member string // prefix of the refs, and JSON member of their names
	command        string // for the ref log
	verb, past     string // such as delete and deleted
	lineFormat     string // for people, of what is done, the name and the commit
	names          []string
	dryRun         bool
}

// run deletes the refs, prints them, and returns their number.
func (d *refDeletion) run(ctx context.Context, a *app) (int, error) {
	repo, err := a.open(ctx, !d.dryRun)
	if err != nil {
		return 0, err
	}
	done := d.past
	if d.dryRun {
		done = "would " + d.verb
	}
	var full, lines []string
	var list []any
	for _, name := range d.names {
		ref, err := objects.ReadRef(ctx, repo.Store(), d.folder+name)
		if err == nil && ref.Target.IsZero() {
			err = refs.None(d.folder + name)
		}
		if err != nil {
			return 0, err
		}
		full = append(full, ref.Name)
		list = append(list, map[string]any{d.member: name, "target": ref.Target, "done": done})
		lines = append(lines, capitalize(fmt.Sprintf(d.lineFormat, done, name, ref.Target.Short())))
	}
	if !d.dryRun {
		if err := repo.DeleteRefs(tract.AsOperation(ctx, d.command), full); err != nil {
			return 0, err
		}
	}
	return len(list), a.emit(oneOrAll(list), func(p *format.Printer) {
		for _, line := range lines {
			p.Line(line)
		}
	})
}

// oneOrAll returns the only value of a list, or the list.
func oneOrAll(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// printRef prints what was done to a branch or a tag.
func (a *app) printRef(kind, done, name string, at objects.ID) error {
	return a.emit(map[string]any{kind: name, "target": at, "done": done}, func(p *format.Printer) {
		p.Line(capitalize(done) + " " + kind + " " + name + " (at " + at.Short() + ")")
	})
}

// capitalize returns the text with an upper-case first letter.
func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
