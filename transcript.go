package tract

import (
	"context"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// shown is what a model was shown to write a summary: a copy of what the summary stands
// for, in a history that only the manifest of the request leads to.
type shown struct {
	commit *commit.Commit
	text   string
}

// findShown finds what models were shown to write summaries, so that words which are
// taken away do not stay there.
func (w *purge) findShown(ctx context.Context) error {
	seen := map[objects.ID]bool{{}: true}
	for c, err := range w.repo.ever(ctx) {
		if err != nil {
			return err
		}
		if c.Kind != content.KindSummary || seen[c.Origin] {
			continue
		}
		seen[c.Origin] = true
		if err := w.shownTo(ctx, c.Origin); err != nil {
			return err
		}
	}
	return nil
}

// shownTo takes in what was asked of the model that a summary came from.
func (w *purge) shownTo(ctx context.Context, origin objects.ID) error {
	from, err := commit.ReadOrigin(ctx, w.repo.store, origin)
	if err != nil || from.Manifest.IsZero() {
		return err
	}
	m, err := compile.ReadManifest(ctx, w.repo.store, from.Manifest)
	if err != nil {
		return err
	}
	for c, err := range commit.Walk(ctx, w.repo.store, m.Head, 0) {
		if err == nil {
			err = commit.Load(ctx, w.repo.store, c)
		}
		if err != nil {
			return err
		}
		if c.Kind == content.KindUser && c.Erased == nil {
			w.shown = append(w.shown, shown{c, c.Block.String()})
		}
	}
	return nil
}

// copied adds what models were shown, where it has the words of a block as they are
// written there (see Range.transcript).
func (w *purge) copied(b content.Block) {
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return
	}
	for _, s := range w.shown {
		if !w.has[s.commit.Content] && strings.Contains(s.text, "\n"+text+"\n") {
			w.addContent(s.commit)
			w.done.Copies = append(w.done.Copies, s.commit)
		}
	}
}
