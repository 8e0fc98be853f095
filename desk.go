package tract

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// desk is the memory that one write works in, and after it another: to make it anew each
// time, and to find out that nobody has it any more, would cost as much as all hashes of
// a commit. Nothing on it outlives the call that has it: a store keeps nothing of a batch,
// and what is remembered or returned is copied.
type desk struct {
	call    call
	drafts  []commit.Draft
	origins []commit.Origin
	commits commit.Writer
	masks   masking
	made    []*commit.Commit
	moves   [1]objects.RefUpdate
	ids     []objects.ID // of the commits, which the caller gets
}

// deskMost is how many bytes of objects a desk is kept after.
const deskMost = 64 << 10

// desk gives a desk, which goes back when all is done.
func (r *Repo) desk() *desk {
	if d, _ := r.desks.Get().(*desk); d != nil {
		return d
	}
	return new(desk)
}

// leave gives a desk back, unless something large lay on it.
func (r *Repo) leave(d *desk) {
	size := 0
	for _, o := range d.commits.Put() {
		size += len(o.Data) + (len(o.Parents)+len(o.Links))*len(o.ID)
	}
	if size > deskMost {
		return
	}
	clear(d.drafts)
	clear(d.origins)
	clear(d.made)
	d.commits.Reset(0)
	*d = desk{drafts: d.drafts[:0], origins: d.origins[:0], commits: d.commits, made: d.made[:0]}
	r.desks.Put(d)
}

// write makes the commits of drafts as commit.Write does.
func (d *desk) write(c *call, parent *commit.Commit, drafts []commit.Draft) ([]*commit.Commit, error) {
	d.commits.Reset(0)
	d.masks, d.made = *c.masking(), d.made[:0]
	w := writer{commits: &d.commits, masks: &d.masks}
	for i := range drafts {
		made, err := w.write(parent, &drafts[i])
		if err != nil {
			return nil, err
		}
		d.made, parent = append(d.made, made), made
	}
	c.tell(d.masks.found)
	return d.made, nil
}

// draft makes drafts on the desk of blocks that a person or a tool brings.
func (d *desk) draft(session string, c *call, tip *commit.Commit, blocks []content.Block) []commit.Draft {
	d.drafts, d.origins = d.drafts[:0], d.origins[:0]
	before := commit.Commit{Op: commit.Append}
	last := tip
	for i, block := range blocks {
		if i > 0 { // of one call its role is all that is looked at
			was := &d.drafts[i-1]
			before.Kind, before.Role, before.Index = was.Block.Kind(), was.Role, was.Index
			last = &before
		}
		one := commit.Draft{
			Block: block, Role: c.role, Priority: c.priority, Time: c.time, Author: c.author,
			Key: c.key, Origin: d.origin(c, block, session), Label: c.label,
		}
		if one.Role == content.NoRole {
			one.Role = content.RoleOf(block)
		}
		if continues(last, &one, i > 0) {
			one.Index = last.Index + 1
		}
		d.drafts = append(d.drafts, one)
	}
	return d.drafts
}

// origin is where a block comes from. Those of one source share it.
func (d *desk) origin(c *call, block content.Block, session string) *commit.Origin {
	source := c.source
	if source == "" {
		source = commit.SourceUser
		if block.Kind() == content.KindToolResult {
			source = commit.SourceTool
		}
	}
	for i := range d.origins {
		if d.origins[i].Source == source {
			return &d.origins[i]
		}
	}
	if d.origins == nil {
		d.origins = make([]commit.Origin, 0, 2) // there are no more, so that they stay where they are
	}
	d.origins = append(d.origins, commit.Origin{Source: source, Session: session})
	return &d.origins[len(d.origins)-1]
}
