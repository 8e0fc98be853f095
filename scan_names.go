package tract

import (
	"context"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// author looks at the name of an author, each once.
func (k *scanning) author(ctx context.Context, c *commit.Commit, name string) error {
	if name == "" || k.names[name] {
		return nil
	}
	k.names[name] = true
	return k.text(ctx, Leak{Commit: c, Object: c.ID, Where: inAuthor}, name)
}

// refNames looks at the names that branches and tags have or had, and at who moved
// them. tips is where they are, or were last.
func (k *scanning) refNames(ctx context.Context, log []objects.LogEntry, tips map[string]objects.ID) error {
	seen := map[string]bool{}
	for _, entry := range log {
		for _, u := range entry.Refs {
			if seen[u.Name] || k.left {
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

// Named tells whether a leak is in the name of a branch, a tag or an author. Names are
// part of commits and of the log of refs, and stay: only another can be taken from now on.
func (l *Leak) Named() bool { return l.Where == inAuthor || l.Where == inBranch || l.Where == inTag }
