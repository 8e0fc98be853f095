package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

type showOptions struct{ raw, prompt bool }

func newShow(a *app) *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use: "show [REV]", Short: "Show one commit",
		Long: `Show one commit: its content, its annotations and edits, and its origin. --prompt shows the
prompt that the model received when it wrote the block; --raw writes the exact bytes of the
content. Together they write the request body, byte for byte, as tract why --prompt does:
of a recorded request the stored body. If secrets in that were masked, an error says so.`,
		Example: `  tract show
  tract show :/Rayleigh --raw > answer.md
  tract show toolu_01A --prompt`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.show(ctx, o, id) }),
	}
	cmd.Flags().BoolVar(&o.raw, "raw", false, "write the exact bytes of the content")
	cmd.Flags().BoolVar(&o.prompt, "prompt", false, "show the prompt that the response answers")
	return cmd
}

func (a *app) show(ctx context.Context, o *showOptions, id objects.ID) error {
	if o.prompt && o.raw {
		return a.printReproducedRequest(ctx, id.String())
	}
	if o.prompt {
		p, err := inspect.Prompt(ctx, a.repo, id.String())
		if err != nil {
			return err
		}
		return a.emitPage(format.PromptJSON(p, ""), func(out *format.Printer) {
			out.Prompt(p)
		})
	}
	return a.showCommit(ctx, id, o.raw)
}

// showCommit shows one commit, or the bytes of its content.
func (a *app) showCommit(ctx context.Context, id objects.ID, raw bool) error {
	c, damaged := a.repo.Show(ctx, id.String())
	if err := a.damage.collectDamage(damaged); err != nil {
		return err
	}
	if raw && c.Block == nil && damaged != nil {
		return damaged
	}
	if raw && c.Tombstone != nil {
		return fmt.Errorf("show: %w", &objects.PurgedError{Tombstone: *c.Tombstone})
	}
	if raw {
		_, err := io.WriteString(a.out, rawText(c.Block))
		return err
	}
	dressed, err := a.loadDetails(ctx, c)
	if err != nil {
		return err
	}
	dressed.Damaged = damaged
	return a.emitPage(format.ShowJSON(dressed), func(out *format.Printer) { out.Show(dressed) })
}

// rawText returns the bytes of media, or the text of another block.
func rawText(b content.Block) string {
	if m, ok := b.(content.Media); ok && m.Data != "" {
		return m.Data
	}
	if b == nil {
		return ""
	}
	return b.String()
}

// loadDetails returns a commit with its changes, on the current branch if it has the commit,
// otherwise up to it. Damage is recorded.
func (a *app) loadDetails(ctx context.Context, c *commit.Commit) (format.Commit, error) {
	dressed := format.Commit{Commit: c}
	names, err := a.decorations(ctx, a.repo)
	if err != nil {
		return dressed, err
	}
	dressed.Refs = names[c.ID]
	head := c.ID
	if tip, err := a.resolve(ctx, "HEAD"); err == nil {
		base, err := commit.MergeBase(ctx, a.repo.Store(), tip, c.ID)
		if err != nil {
			return dressed, err
		}
		if base == c.ID {
			head = tip
		}
	}
	dressed.Notes, err = inspect.Changes(ctx, a.repo, head, c.ID)
	if err := a.damage.collectDamage(err); err != nil {
		return dressed, err
	}
	entries, err := compile.Decisions(ctx, a.repo.Store(), head, compile.Options{Policy: a.loaded.Policy()})
	if errors.Is(err, objects.ErrCorrupt) { // words of an annotation: levels are not known
		return dressed, a.damage.collectDamage(&commit.DamagedError{Commit: c.ID, Cause: err})
	}
	if err != nil {
		return dressed, err
	}
	if i := slices.IndexFunc(entries, func(e compile.Entry) bool { return e.ID == c.ID }); i >= 0 {
		e := &entries[i]
		dressed.Level, dressed.Why, dressed.Turn = e.Level, e.Why(), int(e.Turn)
		return dressed, nil
	}
	return dressed, fmt.Errorf("show %s: not in the history of %s", c.ID.Short(), head.Short())
}
