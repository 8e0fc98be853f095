package tract

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/objects"
)

// Line is one line of a prompt and where it came from.
type Line struct {
	Message int            // number of the message in the prompt, from 0
	Block   objects.ID     // the block it belongs to
	Said    *commit.Commit // that brought the line: the block, or the edit that last changed the line; with its origin
	Role    content.Role
	Kind    content.Kind
	Text    string // without its line feed
}

// Blame tells of each line of the prompt of a revision which commit brought it. A
// line that an edit left as it was is that of the commit before the edit.
func (r *Repo) Blame(ctx context.Context, rev string, opts ...Option) ([]Line, error) {
	p, err := r.Compile(ctx, rev, opts...)
	if err != nil {
		return nil, err
	}
	said, err := commit.Headers(ctx, r.store, slices.Concat(p.Commits...))
	if err != nil {
		return nil, err
	}
	versions := map[objects.ID][]*commit.Commit{} // of a block, oldest first
	for _, c := range said {
		versions[c.ID] = []*commit.Commit{c}
	}
	needed := said
	for _, e := range p.Entries {
		if e.Op == commit.Edit && versions[e.Speaks.Target] != nil {
			edit := e.Speaks.Clone() // it is filled in
			versions[edit.Target], needed = append(versions[edit.Target], edit), append(needed, edit)
		}
	}
	if err := commit.LoadAll(ctx, r.store, needed...); err != nil {
		return nil, err
	}
	var lines []Line
	for i, m := range p.Messages {
		for j, b := range m.Blocks {
			id := p.Commits[i][j]
			for _, l := range blameBlock(versions[id]) {
				l.Message, l.Block, l.Role, l.Kind = i, id, m.Role, b.Kind()
				lines = append(lines, l)
			}
		}
	}
	return lines, nil
}

// blameTime is how long two versions of a block are compared at most.
const blameTime = 500 * time.Millisecond

// blameBlock is the lines of the last version of a block.
func blameBlock(versions []*commit.Commit) []Line {
	var lines []Line // of the version before, with their line feeds
	text := ""
	for i, v := range versions {
		now := v.Block.String()
		if i == 0 {
			lines = fresh(nil, v, now)
			text = now
			continue
		}
		var next []Line
		at := 0
		for _, span := range diff.Texts(ended(text), ended(now), diff.TextOptions{Timeout: blameTime}) {
			n := strings.Count(span.Text, "\n")
			switch span.Op {
			case diff.Same:
				next = append(next, lines[at:at+n]...)
				at += n
			case diff.Remove:
				at += n
			case diff.Add:
				next = fresh(next, v, span.Text)
			}
		}
		lines, text = next, now
	}
	return lines
}

// ended is a text whose last line has its line feed.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// fresh adds the lines of a text as those of a commit.
func fresh(lines []Line, said *commit.Commit, text string) []Line {
	for line := range strings.Lines(text) {
		lines = append(lines, Line{Said: said, Text: strings.TrimSuffix(line, "\n")})
	}
	return lines
}
