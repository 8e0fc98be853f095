package tract

import (
	"context"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// summary is the draft of what stands for all that a merge brings, nil when no
// summary is asked for, and what has to be put with it.
func (b *Branch) summary(ctx context.Context, c *call, m MergeOptions, r *MergeResult) (*commit.Draft, []objects.Object, error) {
	if m.Summary == "" && m.Summarize == nil {
		return nil, nil, nil
	}
	d := b.draft(c, commit.Compress, r.Incoming[len(r.Incoming)-1].ID)
	d.First, d.Label = r.Incoming[0].ID, commit.Label{}
	var put []objects.Object
	text := m.Summary
	if m.Summarize != nil {
		asked, err := b.repo.brought(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if text, d.Origin, put, err = b.askSummary(ctx, c, m.Summarize, asked); err != nil {
			return nil, nil, err
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil, ErrEmpty
	}
	d.Block = content.Text{Of: content.KindSummary, Text: text}
	return &d, put, nil
}

// brought is what a merge brings and a summary would stand for.
func (r *Repo) brought(ctx context.Context, m *MergeResult) (*Summary, error) {
	p, err := compile.Chain(ctx, r.store, m.Theirs, compile.Options{})
	if err != nil {
		return nil, err
	}
	wanted := map[objects.ID]bool{}
	for _, c := range m.Incoming {
		wanted[c.ID] = true
	}
	var entries []*compile.Entry
	for i := range p.Entries {
		e := &p.Entries[i]
		if !wanted[e.ID] || !e.Sent || e.Level != priority.Normal || e.Kind == content.KindSystem {
			continue
		}
		entries = append(entries, e)
	}
	found := &Summary{}
	found.Commits, err = r.said(ctx, entries)
	return found, err
}
