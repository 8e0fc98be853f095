package tract

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
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
// line that an edit left as it was is that of the commit before the edit. Where merged
// histories both have the line, it is that of the edit on the side of the first parent.
func (r *Repo) Blame(ctx context.Context, rev string, opts ...Option) ([]Line, error) {
	p, err := r.Compile(ctx, rev, opts...)
	if err != nil {
		return nil, err
	}
	versions, err := r.editions(ctx, p)
	if err != nil {
		return nil, err
	}
	said := make([]objects.ID, len(p.Said))
	for i, at := range p.Said {
		said[i] = p.Entries[at].ID
	}
	needed, err := commit.Headers(ctx, r.store, said)
	if err != nil {
		return nil, err
	}
	all := make(map[objects.ID]*commit.Commit, len(needed))
	for _, c := range needed {
		all[c.ID] = c
		for _, v := range versions[c.ID] {
			needed = append(needed, v.Commit)
		}
	}
	if err := commit.LoadAll(ctx, r.store, needed...); err != nil {
		return nil, err
	}
	var lines []Line
	for i, commits := range p.Commits() {
		m := p.Messages[i]
		for j, b := range m.Blocks {
			id := commits[j]
			for _, l := range blameBlock(all[id], versions[id]) {
				l.Message, l.Block, l.Role, l.Kind = i, id, m.Role, b.Kind()
				lines = append(lines, l)
			}
		}
	}
	return lines, nil
}

// edition is an edit of a block and those that it was made over: several where
// histories were merged in between, that of the first parent first; none: the block
// itself.
type edition struct {
	*commit.Commit
	over []objects.ID
}

// editions lists the edits of each block, in the order of the prompt.
func (r *Repo) editions(ctx context.Context, p *compile.Prompt) (map[objects.ID][]edition, error) {
	merged := map[objects.ID]*commit.Commit{} // all commits, when there are merges
	if slices.ContainsFunc(p.Entries, func(e compile.Entry) bool { return e.Op == commit.Merge }) {
		ids := make([]objects.ID, len(p.Entries))
		for i := range p.Entries {
			ids[i] = p.Entries[i].ID
		}
		headers, err := commit.Headers(ctx, r.store, ids)
		if err != nil {
			return nil, err
		}
		for _, c := range headers {
			merged[c.ID] = c
		}
	}
	list := map[objects.ID][]edition{}
	for i := range p.Entries {
		if p.Entries[i].Op != commit.Edit {
			continue
		}
		c := p.Entries[i].Speaks().Clone() // it is filled in
		before := list[c.Target]
		v := edition{Commit: c}
		switch {
		case len(before) == 0:
		case len(merged) == 0:
			v.over = []objects.ID{before[len(before)-1].ID}
		default:
			v.over = lastEdits(c.Target, c.Parents, merged)
		}
		list[c.Target] = append(before, v)
	}
	if len(merged) == 0 {
		return list, nil
	}
	for target, edits := range list {
		// A merge may have joined several edits without one over them. The last edit in
		// the order of the prompt has the words, but not every line is its own.
		if over := lastEdits(target, []objects.ID{p.Head}, merged); len(over) > 1 {
			last := edits[len(edits)-1].Clone()
			list[target] = append(edits, edition{Commit: last, over: over})
		}
	}
	return list, nil
}

// lastEdits finds the last edits of a block in the histories of tips, all that its
// first parent leads to before what other parents lead to.
func lastEdits(target objects.ID, tips []objects.ID, all map[objects.ID]*commit.Commit) (last []objects.ID) {
	seen := map[objects.ID]bool{}
	open := slices.Clone(tips)
	slices.Reverse(open)
	for len(open) > 0 {
		c := all[open[len(open)-1]]
		if open = open[:len(open)-1]; c == nil || seen[c.ID] || c.ID == target {
			continue
		}
		seen[c.ID] = true
		if c.Op == commit.Edit && c.Target == target {
			last = append(last, c.ID)
			continue
		}
		for _, parent := range slices.Backward(c.Parents) {
			open = append(open, parent)
		}
	}
	return last
}

// blameTime is how long two versions of a block are compared at most.
const blameTime = 500 * time.Millisecond

// blameBlock is the lines of the last version of a block.
func blameBlock(first *commit.Commit, edits []edition) []Line {
	lines := fresh(nil, first, first.Block.String())
	known := map[objects.ID][]Line{first.ID: lines}
	for _, v := range edits {
		over := v.over
		if len(over) == 0 {
			over = []objects.ID{first.ID}
		}
		lines = fresh(nil, v.Commit, v.Block.String())
		for _, id := range over {
			inherit(lines, known[id], v.Commit)
		}
		known[v.ID] = lines
	}
	return lines
}

// inherit gives the lines that an edit left as they were to whom they were of before,
// unless another version has claimed them.
func inherit(lines, before []Line, edit *commit.Commit) {
	from, at := 0, 0
	for _, span := range diff.Texts(joined(before), joined(lines), diff.TextOptions{Timeout: blameTime}) {
		n := strings.Count(span.Text, "\n")
		switch span.Op {
		case diff.Same:
			for i := range n {
				if lines[at+i].Said == edit {
					lines[at+i].Said = before[from+i].Said
				}
			}
			from, at = from+n, at+n
		case diff.Remove:
			from += n
		case diff.Add:
			at += n
		}
	}
}

// joined is the text of lines, each with its line feed.
func joined(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// fresh adds the lines of a text as those of a commit.
func fresh(lines []Line, said *commit.Commit, text string) []Line {
	for line := range strings.Lines(text) {
		lines = append(lines, Line{Said: said, Text: strings.TrimSuffix(line, "\n")})
	}
	return lines
}
