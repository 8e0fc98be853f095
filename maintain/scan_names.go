package maintain

import (
	"context"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// author scans the name of an author, each once.
func (k *scanner) author(ctx context.Context, c *commit.Commit, name string) error {
	if name == "" || k.names[name] {
		return nil
	}
	k.names[name] = true
	return k.text(ctx, Leak{Commit: c, Object: c.ID, Where: inAuthor}, name)
}

// refNames scans the names that branches and tags have or had, and the authors in the ref
// log. tips has the last target of each ref.
func (k *scanner) refNames(ctx context.Context, log []objects.LogEntry, tips map[string]objects.ID) error {
	seen := map[string]bool{}
	for _, entry := range log {
		for _, u := range entry.Refs {
			if seen[u.Name] || k.stopped {
				continue
			}
			seen[u.Name] = true
			leak := Leak{Commit: &commit.Commit{ID: tips[u.Name]}, Object: tips[u.Name], Where: inBranch}
			name, is := strings.CutPrefix(u.Name, refs.Heads)
			if !is {
				leak.Where = inTag
				name, is = strings.CutPrefix(u.Name, refs.Tags)
			}
			if !is {
				continue
			}
			if err := k.text(ctx, leak, name); err != nil {
				return err
			}
			if err := k.author(ctx, leak.Commit, entry.Note.Author); err != nil {
				return err
			}
		}
	}
	return nil
}
