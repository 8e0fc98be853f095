package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Redaction takes words of a commit away.
type Redaction struct {
	Commit  objects.ID
	Content bool          // its words go
	Block   content.Block // what comes in their place where they count, such as the same with a secret masked; of the same kind; nil: nothing
	Label   bool          // its label goes
}

// reworded is a block as an edit says it: a seal was on other words, and a thought that
// had one is no thought of its provider any more.
func reworded(b content.Block) content.Block {
	if b.Form().Seal.IsZero() && b.Kind() != content.KindReasoning {
		return b
	}
	if edited, err := content.Edited(b, b.String()); err == nil {
		return edited
	}
	return b
}

// Redacting says what is to be redacted.
type Redacting struct {
	List    []Redaction
	Objects []objects.ID // objects that go, and nothing comes in their place: definitions of tools, the description of a branch
	Why     string       // what tombstones say
	Dry     bool         // only say what would be done

	Progress func(done, total int64)
}

// RedactResult is what a Redact has done, or would.
type RedactResult struct {
	Erasure
	Commits []objects.ID            // whose words or labels went
	Edits   map[string][]objects.ID // the commits that brought the new words, by branch; none when it was only to be said
	Sealed  []objects.ID            // left as they are: an open tool loop needs them under their seal
}

// Redact puts other words in the place of those of commits, on every branch where they
// count, as edits and annotations do; and then takes the old ones away as Purge does.
// A seal goes with the words that it was on; where an open tool loop needs it they are
// left as they are. Words that an edit had replaced already are taken away only. It is
// safe to repeat.
func (r *Repo) Redact(ctx context.Context, p Redacting, opts ...Option) (*RedactResult, error) {
	c, err := r.call(opts)
	if err != nil {
		return nil, err
	}
	done, err := r.redact(ctx, c, p)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return done, nil
}

func (r *Repo) redact(ctx context.Context, c *call, p Redacting) (*RedactResult, error) {
	w := &redacting{repo: r, call: c, instead: map[objects.ID]content.Block{}, done: &RedactResult{Edits: map[string][]objects.ID{}}}
	heads, err := r.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads})
	if err != nil {
		return nil, err
	}
	if w.open, err = r.openContents(ctx); err != nil {
		return nil, err
	}
	e, err := r.newErasing(ctx, c, p.Why)
	if err != nil {
		return nil, err
	}
	if err := w.take(ctx, p.List, e); err != nil {
		return nil, err
	}
	for _, id := range p.Objects {
		if err := e.object(ctx, id); err != nil {
			return nil, err
		}
	}
	if !p.Dry {
		for _, ref := range heads {
			if err := w.branch(ctx, r.Branch(refs.Name(ref.Name))); err != nil {
				return nil, err
			}
		}
	}
	w.done.Erasure, err = e.erase(ctx, p.Dry, p.Progress)
	return w.done, err
}

// redacting is one Redact.
type redacting struct {
	repo    *Repo
	call    *call
	instead map[objects.ID]content.Block // of contents
	open    map[objects.ID]bool          // contents of open turns
	done    *RedactResult
}

// take looks at what is to be redacted.
func (w *redacting) take(ctx context.Context, list []Redaction, e *erasing) error {
	for _, one := range list {
		at, err := commit.Read(ctx, w.repo.store, one.Commit)
		if err == nil {
			err = commit.LoadAll(ctx, w.repo.store, at)
		}
		switch {
		case err != nil:
			return err
		case one.Block != nil && one.Block.Kind() != at.Kind:
			return fmt.Errorf("commit %s is a %s and cannot say what a %s says", at.ID.Short(), at.Kind, one.Block.Kind())
		case one.Block != nil && at.Block != nil && !at.Block.Form().Seal.IsZero() && w.open[at.Content]:
			w.done.Sealed = append(w.done.Sealed, at.ID)
			one.Content, one.Block = false, nil
		}
		before := len(e.graves)
		if one.Label {
			e.label(at)
		}
		if one.Block != nil {
			w.instead[at.Content] = one.Block
		}
		if one.Content && !at.Content.IsZero() {
			if _, err := e.contents(ctx, []*commit.Commit{at}); err != nil {
				return err
			}
		}
		if len(e.graves) > before {
			w.done.Commits = append(w.done.Commits, at.ID)
		}
	}
	return nil
}

// branch brings the new words to a branch.
func (w *redacting) branch(ctx context.Context, b *Branch) error {
	ids, err := b.write(ctx, w.call, "redact", func(tip *commit.Commit) ([]commit.Draft, error) {
		line, err := commit.Line(ctx, w.repo.store, tip.ID)
		if err != nil {
			return nil, err
		}
		return w.drafts(b, line), nil
	})
	if len(ids) > 0 {
		w.done.Edits[b.Name()] = ids
	}
	return err
}

// drafts says anew what counts at the end of a history and is to be redacted.
func (w *redacting) drafts(b *Branch, line []*commit.Commit) (drafts []commit.Draft) {
	last, _ := sayings(line)
	for _, c := range line {
		says := c
		if edit := last[subject{c.ID, commit.Edit}]; edit != nil {
			says = edit
		}
		if block := w.instead[says.Content]; block != nil && c.Says() {
			d := b.draft(w.call, commit.Edit, c.ID)
			d.Role, d.Block, d.Label = c.Role, reworded(block), commit.Label{}
			drafts = append(drafts, d)
		}
		if note := last[subject{c.ID, commit.Annotate}]; note != nil {
			if block := w.instead[note.Content]; block != nil {
				d := b.noted(w.call, c.ID, note.Priority, block.String())
				d.Label = commit.Label{}
				drafts = append(drafts, d)
			}
		}
	}
	return drafts
}
