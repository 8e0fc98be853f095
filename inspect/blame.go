package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/objects"
)

// Blame attributes each line of a block to the commit that added or last changed it, as git blame does,
// but it goes forward. It starts with the lines of the block itself, and takes the edits of the block
// in the order of the prompt. Each edit is compared with its bases, the texts that it replaced: a line
// that a base has keeps the commit that it has there, any other line belongs to the edit. Without merges
// an edit has one base, the edit before it. Where histories were merged, lastVersions finds one base on
// each side, that of the first parent first, and a line that two bases have is attributed to the first.
// If a merge joined several edits and no edit follows, the last one is compared again with all of them.

// Line is one line of a prompt and the commit that it came from.
type Line struct {
	Message int            // number of the message in the prompt, from 0
	Block   objects.ID     // the block that the line is part of
	Commit  *commit.Commit // the commit of the block, or of the edit that last changed the line; with its origin
	Role    content.Role
	Kind    content.Kind
	Text    string // without its line feed
}

// Blame returns the lines of a prompt of the repo, each with the commit that added or last changed
// it. A line that an edit left unchanged keeps the commit that it had before the edit. A line that
// both sides of a merge have is attributed to the edit on the side of the first parent.
func Blame(ctx context.Context, repo *tract.Repo, p *compile.Prompt) ([]Line, error) {
	store := repo.Store()
	versions, err := editsByBlock(ctx, store, p)
	if err != nil {
		return nil, err
	}
	blocks := make([]objects.ID, len(p.BlockEntries))
	for i, at := range p.BlockEntries {
		blocks[i] = p.Entries[at].ID
	}
	needed, err := commit.ReadHeaders(ctx, store, blocks)
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
	if err := commit.LoadAll(ctx, store, needed...); err != nil {
		return nil, err
	}
	var lines []Line
	for i, commits := range p.MessageCommits() {
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

// version is an edit of a block and its bases: the edits, or the block itself, whose text the
// edit replaced. There are several bases when histories were merged in between, with the base of
// the first parent first; an empty list stands for the block itself.
type version struct {
	*commit.Commit
	bases []objects.ID
}

// editsByBlock returns the edits of each block, in the order of the prompt.
func editsByBlock(ctx context.Context, r objects.Reader, p *compile.Prompt) (map[objects.ID][]version, error) {
	merged := map[objects.ID]*commit.Commit{} // all commits, when there are merges
	if slices.ContainsFunc(p.Entries, func(e compile.Entry) bool { return e.Op == commit.Merge }) {
		ids := make([]objects.ID, len(p.Entries))
		for i := range p.Entries {
			ids[i] = p.Entries[i].ID
		}
		headers, err := commit.ReadHeaders(ctx, r, ids)
		if err != nil {
			return nil, err
		}
		for _, c := range headers {
			merged[c.ID] = c
		}
	}
	list := map[objects.ID][]version{}
	for i := range p.Entries {
		if p.Entries[i].Op != commit.Edit {
			continue
		}
		c := p.Entries[i].Change().Clone() // a copy, because its content will be loaded
		before := list[c.Target]
		v := version{Commit: c}
		switch {
		case len(before) == 0:
		case len(merged) == 0:
			v.bases = []objects.ID{before[len(before)-1].ID}
		default:
			v.bases = lastVersions(c.Target, c.Parents, merged)
		}
		list[c.Target] = append(before, v)
	}
	if len(merged) == 0 {
		return list, nil
	}
	for target, edits := range list {
		// A merge may have joined several edits without a later edit. The last edit in the
		// order of the prompt has the text, but some lines may come from the other edits.
		if bases := lastVersions(target, []objects.ID{p.Head}, merged); len(bases) > 1 {
			last := edits[len(edits)-1].Clone()
			list[target] = append(edits, version{Commit: last, bases: bases})
		}
	}
	return list, nil
}

// lastVersions returns the ids of the last edits of a block in the histories of tips, and the id
// of the block itself where a history reaches it without an edit. Edits on the side of a first
// parent come first. all has the headers of all commits.
func lastVersions(target objects.ID, tips []objects.ID, all map[objects.ID]*commit.Commit) (last []objects.ID) {
	seen := map[objects.ID]bool{}
	open := slices.Clone(tips)
	slices.Reverse(open)
	for len(open) > 0 {
		c := all[open[len(open)-1]]
		if open = open[:len(open)-1]; c == nil || seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		if c.ID == target || c.Op == commit.Edit && c.Target == target {
			last = append(last, c.ID)
			continue
		}
		for _, parent := range slices.Backward(c.Parents) {
			open = append(open, parent)
		}
	}
	return last
}

// blameTime is the time limit for comparing two versions of a block.
const blameTime = 500 * time.Millisecond

// blameBlock returns the lines of the last version of a block.
func blameBlock(first *commit.Commit, edits []version) []Line {
	lines := linesOf(first)
	known := map[objects.ID][]Line{first.ID: lines}
	for _, v := range edits {
		bases := v.bases
		if len(bases) == 0 {
			bases = []objects.ID{first.ID}
		}
		lines = linesOf(v.Commit)
		for _, id := range bases {
			inheritLines(lines, known[id], v.Commit)
		}
		known[v.ID] = lines
	}
	return lines
}

// inheritLines attributes the lines that an edit left unchanged to their commits in before, unless
// they are already attributed to another commit than the edit.
func inheritLines(lines, before []Line, edit *commit.Commit) {
	from, at := 0, 0
	for _, span := range diff.Texts(joinLines(before), joinLines(lines), diff.TextOptions{Timeout: blameTime}) {
		n := strings.Count(span.Text, "\n")
		switch span.Op {
		case diff.Same:
			for i := range n {
				if lines[at+i].Commit == edit {
					lines[at+i].Commit = before[from+i].Commit
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

// joinLines returns the text of lines, each with its line feed.
func joinLines(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// linesOf returns the lines of the block of a commit.
func linesOf(c *commit.Commit) (lines []Line) {
	for line := range strings.Lines(c.Block.String()) {
		lines = append(lines, Line{Commit: c, Text: strings.TrimSuffix(line, "\n")})
	}
	return lines
}
