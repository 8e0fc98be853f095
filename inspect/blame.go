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
// but it goes forward over the history, in the order of the prompt. It keeps the text of each block that
// is in force, by the rule of the compiler: the last edit in the order of commit.Linearize. An edit is
// compared with its base, the text in force at its parent: a line that the base has keeps the commit
// that it has there, any other line belongs to the edit. A merge that brings edits of a block leaves a
// text that has a base on each side, that of the first parent first; a line that two bases have is
// attributed to the first. That text is the base of a later edit. Only an edit that the merge itself made,
// because it resolved a conflict, has the two sides as its bases.

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
	ids := make([]objects.ID, len(p.BlockEntries))
	for i, at := range p.BlockEntries {
		ids[i] = p.Entries[at].ID
	}
	needed, err := commit.ReadHeaders(ctx, store, ids)
	if err != nil {
		return nil, err
	}
	h := blockHistory{blocks: make(map[objects.ID]*commit.Commit, len(needed)), edited: map[objects.ID]bool{}}
	for _, c := range needed {
		h.blocks[c.ID] = c
	}
	current, err := h.replay(ctx, store, p)
	if err != nil {
		return nil, err
	}
	if err := commit.LoadAll(ctx, store, append(needed, h.edits...)...); err != nil {
		return nil, err
	}
	for _, v := range h.versions {
		v.blame()
	}
	var lines []Line
	for i, commits := range p.MessageCommits() {
		m := p.Messages[i]
		for j, b := range m.Blocks {
			id := commits[j]
			v := current[id].inForce
			if v == nil { // never edited
				v = &version{commit: h.blocks[id]}
				v.blame()
			}
			for _, l := range v.lines {
				l.Message, l.Block, l.Role, l.Kind = i, id, m.Role, b.Kind()
				lines = append(lines, l)
			}
		}
	}
	return lines, nil
}

// version is a text that a block had: its own, that of an edit, or the text that was in force
// after a merge.
type version struct {
	commit *commit.Commit // the block, or the edit, that has the text
	bases  []*version     // the texts that it replaced; none for the block itself
	merge  *commit.Commit // the merge after which the text is in force, if an edit of that merge may replace it
	lines  []Line         // set by blame
}

// blockVersions are the versions of a block in the history of one commit.
type blockVersions struct {
	edits   []*version // the block and its edits, in the order of commit.Linearize
	inForce *version
}

// versionsAt are the versions of all edited blocks in the history of one commit.
type versionsAt struct {
	blocks map[objects.ID]blockVersions
	merge  *commit.Commit // the merge that made the commit; nil: none
}

// clone returns a copy that can change independently.
func (at *versionsAt) clone() *versionsAt {
	c := &versionsAt{blocks: make(map[objects.ID]blockVersions, len(at.blocks)), merge: at.merge}
	for id, b := range at.blocks {
		b.edits = slices.Clip(b.edits)
		c.blocks[id] = b
	}
	return c
}

// blockHistory finds the versions of the edited blocks among some blocks.
type blockHistory struct {
	blocks   map[objects.ID]*commit.Commit
	edited   map[objects.ID]bool
	edits    []*commit.Commit
	versions []*version // each after its bases
}

// replay goes over the history of a prompt once and returns the versions of the edited blocks at its end.
func (h *blockHistory) replay(ctx context.Context, r objects.Reader, p *compile.Prompt) (map[objects.ID]blockVersions, error) {
	merges := false
	ids := make([]objects.ID, len(p.Entries))
	for i := range p.Entries {
		e := &p.Entries[i]
		ids[i] = e.ID
		if merges = merges || e.Op == commit.Merge; e.Op == commit.Edit && h.blocks[e.Change().Target] != nil {
			h.edited[e.Change().Target] = true
		}
	}
	var line []*commit.Commit        // read only when there are merges: else the parent is the entry before
	children := map[objects.ID]int{} // that still need the versions at a commit
	if merges {
		var err error
		if line, err = commit.ReadHeaders(ctx, r, ids); err != nil {
			return nil, err
		}
	}
	for _, c := range line {
		for _, parent := range c.Parents {
			children[parent]++
		}
	}
	known := map[objects.ID]*versionsAt{}
	take := func(id objects.ID) *versionsAt {
		at := known[id]
		if children[id]--; children[id] > 0 {
			return at.clone()
		}
		delete(known, id)
		return at
	}
	at := &versionsAt{blocks: map[objects.ID]blockVersions{}}
	for i := range p.Entries {
		e := &p.Entries[i]
		if !merges {
			h.apply(at, e)
			continue
		}
		if at = (&versionsAt{blocks: map[objects.ID]blockVersions{}}); len(line[i].Parents) > 0 {
			at = take(line[i].Parent())
		}
		if e.Op == commit.Merge {
			h.mergeVersions(at, take(e.Change().SecondParent()), e.Change())
		} else {
			h.apply(at, e)
		}
		known[e.ID] = at
	}
	return at.blocks, nil
}

// apply changes the versions at the parent of an entry into those at the entry, which is no merge.
func (h *blockHistory) apply(at *versionsAt, e *compile.Entry) {
	// The commits that a merge makes follow it directly and have its time.
	if at.merge != nil && (e.Op == commit.Append || !e.Change().Time.Equal(at.merge.Time)) {
		at.merge = nil
	}
	switch {
	case e.AddsBlock() && h.edited[e.ID]:
		v := h.appendVersion(&version{commit: h.blocks[e.ID]})
		at.blocks[e.ID] = blockVersions{[]*version{v}, v}
	case e.Op == commit.Edit && h.edited[e.Change().Target]:
		c := e.Change().Clone() // a copy, because its content will be loaded
		h.edits = append(h.edits, c)
		b := at.blocks[c.Target]
		v := h.appendVersion(&version{commit: c})
		switch {
		case b.inForce == nil: // in a crafted store: the history of the edit does not have the block
		case b.inForce.merge != nil && b.inForce.merge == at.merge:
			v.bases = b.inForce.bases
		default:
			v.bases = []*version{b.inForce}
		}
		at.blocks[c.Target] = blockVersions{append(b.edits, v), v}
	}
}

// mergeVersions changes ours, the versions at the first parent of a merge, into those at the merge.
func (h *blockHistory) mergeVersions(ours, theirs *versionsAt, merge *commit.Commit) {
	ours.merge = merge
	for id, their := range theirs.blocks {
		our, ok := ours.blocks[id]
		if !ok {
			ours.blocks[id] = their
			continue
		}
		incoming := without(their.edits, our.edits)
		if len(incoming) == 0 {
			continue
		}
		last := incoming[len(incoming)-1]
		v := &version{commit: last.commit, bases: slices.Compact([]*version{our.inForce, their.inForce, last})}
		if len(without(our.edits, their.edits)) > 0 || their.inForce.commit != last.commit {
			v.merge = merge
		}
		ours.blocks[id] = blockVersions{append(our.edits, incoming...), h.appendVersion(v)}
	}
}

// without returns the elements of list that are not in other.
func without(list, other []*version) (rest []*version) {
	for _, v := range list {
		if !slices.Contains(other, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

// appendVersion appends a version, which comes after its bases, and returns it.
func (h *blockHistory) appendVersion(v *version) *version {
	h.versions = append(h.versions, v)
	return v
}

// blameTime is the time limit for comparing two versions of a block.
const blameTime = 500 * time.Millisecond

// blame sets the lines of a version. Its bases have theirs.
func (v *version) blame() {
	for line := range strings.Lines(v.commit.Block.String()) {
		v.lines = append(v.lines, Line{Text: strings.TrimSuffix(line, "\n")})
	}
	for _, base := range v.bases {
		inheritLines(v.lines, base.lines)
	}
	for i := range v.lines {
		if v.lines[i].Commit == nil {
			v.lines[i].Commit = v.commit
		}
	}
}

// inheritLines attributes the lines that a version has in common with a base to their commits there, unless
// they are attributed already.
func inheritLines(lines, before []Line) {
	from, at := 0, 0
	for _, span := range diff.Texts(joinLines(before), joinLines(lines), diff.TextOptions{Timeout: blameTime}) {
		n := strings.Count(span.Text, "\n")
		switch span.Op {
		case diff.Same:
			for i := range n {
				if lines[at+i].Commit == nil {
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
