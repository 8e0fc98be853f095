package maintain

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// selectSecrets selects the objects with secrets.
func (w *purge) selectSecrets(ctx context.Context) error {
	revs := w.Revs
	if len(revs) == 0 {
		revs = []string{""}
	}
	for _, rev := range revs {
		for l, err := range Scan(ctx, w.repo, ScanOptions{Rev: rev, Rules: w.Rules, Progress: w.Progress}) {
			switch {
			case err != nil:
				return err
			case !l.Purgeable(), w.Mask && l.Open:
				w.result.Remaining = append(w.result.Remaining, l)
				continue
			case w.selectedIDs[l.Object]:
				continue
			case w.Mask && l.Where == inContent:
				w.masked[l.Object] = maskSecretsAndDropSeal(l.Commit.Block, w.Rules)
			}
			w.selectedIDs[l.Object] = true
			if err := w.selectObject(ctx, l.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// maskSecretsAndDropSeal returns a block, which has secrets that the rules find, with these masked and
// without its seal, as an edit commits it.
func maskSecretsAndDropSeal(b content.Block, rules []string) content.Block {
	b, _ = history.MaskBlock(b, rules...)
	if b.Kind() == content.KindReasoning {
		if edited, err := content.WithText(b, b.String()); err == nil {
			return edited
		}
	}
	return b
}

// commitMaskingEdits commits edits and annotations with masks on every branch, which moves it.
func (w *purge) commitMaskingEdits(ctx context.Context) error {
	if len(w.masked) == 0 {
		return nil
	}
	heads, err := w.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads})
	if err != nil {
		return err
	}
	operation := history.OperationOf(ctx)
	for _, ref := range heads {
		branch := refs.Name(ref.Name)
		commits, err := history.Write(ctx, w.store, ref.Name, operation.Note(w.Time, w.Author, "purge"), func(tip *commit.Commit) ([]commit.Draft, error) {
			if tip == nil { // it was deleted meanwhile
				return nil, nil
			}
			line, err := commit.Linearize(ctx, w.store, tip.ID)
			return w.maskDrafts(branch, line), err
		})
		if err != nil {
			return fmt.Errorf("mask secrets on branch %s: %w", branch, err)
		}
		for _, c := range commits {
			w.result.Masked[branch] = append(w.result.Masked[branch], c.ID)
		}
	}
	return nil
}

// maskDrafts returns drafts of edits and annotations with masks, for the contents with secrets
// that are in effect at the tip of a branch. line is the history of the branch.
func (w *purge) maskDrafts(branch string, line []*commit.Commit) (drafts []commit.Draft) {
	origin := &commit.Origin{Source: commit.SourceUser, Session: branch}
	latest, _ := history.LatestChanges(line)
	for _, c := range line {
		current := c
		if edit := latest[history.ChangeKey{Target: c.ID, Op: commit.Edit}]; edit != nil {
			current = edit
		}
		d := commit.Draft{Target: c.ID, Time: w.Time, Author: w.Author, Origin: origin}
		if block := w.masked[current.ContentID]; block != nil && c.AddsBlock() {
			d.Op, d.Role, d.Block = commit.Edit, c.Role, block
			drafts = append(drafts, d)
		}
		if note := latest[history.ChangeKey{Target: c.ID, Op: commit.Annotate}]; note != nil && w.masked[note.ContentID] != nil {
			d.Op, d.Role, d.Block, d.Priority = commit.Annotate, content.NoRole, w.masked[note.ContentID], note.Priority
			drafts = append(drafts, d)
		}
	}
	return drafts
}
