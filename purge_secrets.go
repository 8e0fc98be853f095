package tract

import (
	"context"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// secrets adds what has a secret in it.
func (w *purge) secrets(ctx context.Context) error {
	revs := w.Revs
	if len(revs) == 0 {
		revs = []string{""}
	}
	for _, rev := range revs {
		for l, err := range w.repo.Scan(ctx, Scan{Rev: rev, Rules: w.Rules, Progress: w.Progress}) {
			switch {
			case err != nil:
				return err
			case !l.Erasable(), w.Mask && l.Open:
				w.done.Left = append(w.done.Left, l)
				continue
			case w.wanted[l.Object]:
				continue
			case w.Mask && l.Where == inContent:
				w.masked[l.Object] = masked(l.Commit.Block, w.Rules)
			}
			w.wanted[l.Object] = true
			if err := w.object(ctx, l.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// masked is a block as the edit that masks its secrets has it: reasoning of which
// something was replaced is none of its provider any more.
func masked(b content.Block, rules []string) content.Block {
	b, _ = Masked(b, rules...)
	if b.Kind() == content.KindReasoning {
		if edited, err := content.Edited(b, b.String()); err == nil {
			return edited
		}
	}
	return b
}

// Erasable reports whether Purge can remove what a leak is in. Origins and requests, of
// which every proof is made, stay; so do names.
func (l *Leak) Erasable() bool {
	return l.Where != inOrigin && l.Where != inRequest && !l.Named()
}

// replace brings the masked blocks to every branch.
func (w *purge) replace(ctx context.Context) error {
	if len(w.masked) == 0 {
		return nil
	}
	heads, err := w.repo.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads})
	if err != nil {
		return err
	}
	for _, ref := range heads {
		b := w.repo.Branch(refs.Name(ref.Name))
		ids, err := b.write(ctx, w.call, "purge", func(tip *commit.Commit) ([]commit.Draft, error) {
			line, err := commit.Line(ctx, w.repo.store, tip.ID)
			if err != nil {
				return nil, err
			}
			return w.drafts(b, line), nil
		})
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			w.done.Masked[b.Name()] = ids
		}
	}
	return nil
}

// drafts is edits and annotations with masks, in the place of what counts at the end of
// a history.
func (w *purge) drafts(b *Branch, line []*commit.Commit) (drafts []commit.Draft) {
	last, _ := sayings(line)
	for _, c := range line {
		says := c
		if edit := last[subject{c.ID, commit.Edit}]; edit != nil {
			says = edit
		}
		if block := w.masked[says.Content]; block != nil && c.Says() {
			d := b.draft(w.call, commit.Edit, c.ID)
			d.Role, d.Block, d.Label = c.Role, block, commit.Label{}
			drafts = append(drafts, d)
		}
		if note := last[subject{c.ID, commit.Annotate}]; note != nil {
			if block := w.masked[note.Content]; block != nil {
				d := b.noted(w.call, c.ID, note.Priority, block.String())
				d.Label = commit.Label{}
				drafts = append(drafts, d)
			}
		}
	}
	return drafts
}
