package postgres

import (
	"context"
	"math/rand/v2"

	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// inlineSize is the size from which a content is stored by its id.
const inlineSize = 4 << 10

// write is what one Apply inserts.
type write struct {
	commits []commitRow
	blobs   []blobRow
	refs    []refRow
	copies  bool
	size    int
	lost    bool // a ref has moved, and nothing was written
}

type commitRow struct {
	at, from    position // from: the end of the line before; line -1: the commit begins none
	id, content objects.ID
	head, body  []byte // body nil: the content is elsewhere
}

type blobRow struct {
	id    objects.ID
	kind  objects.Kind
	codec int16
	data  []byte
}

type refRow struct {
	name          string
	before, state refState
	record        []byte // nil: the log entry is with another ref
}

// planner decides where the objects of a batch go.
type planner struct {
	write
	put    map[objects.ID]*objects.Object
	stored map[objects.ID]bool     // objects of the batch that are in the store, and contents that go with a commit
	at     map[objects.ID]position // of first parents, and of commits of the batch
	ends   map[position]bool       // of the lines that this write may extend
	purges uint64                  // as they were known before the write
}

// plan decides where the objects of a batch go that moves refs. A line is extended only by a write that moves
// the ref that owns it, or by the process that began it, so no other commit has the next position. Every
// other commit begins a line, and plan asks the database whether it is there already. lookUpAll asks for
// everything, and has all commits begin lines: something was there of which this process did not know.
func (s *store) plan(ctx context.Context, b *objects.Batch, refs []refRow, lookUpAll bool) (*planner, error) {
	p := &planner{
		put: make(map[objects.ID]*objects.Object, len(b.Put)), stored: map[objects.ID]bool{}, at: map[objects.ID]position{}, ends: map[position]bool{},
	}
	p.refs, p.copies, p.purges = refs, b.Copies, s.purges.Load()
	for i := range b.Put {
		p.put[b.Put[i].ID] = &b.Put[i]
	}
	for i := range refs {
		if r := &refs[i].before; r.ownsLine && !lookUpAll {
			p.at[r.target], p.ends[r.at] = r.at, true
		}
	}
	if err := s.lookUpKnown(ctx, p, b.Put, lookUpAll); err != nil {
		return nil, err
	}
	for i := range b.Put {
		if o := &b.Put[i]; o.Kind == objects.KindCommit {
			p.placeWithAncestors(o)
		}
	}
	for i := range b.Put {
		if o := &b.Put[i]; o.Kind != objects.KindCommit && !p.stored[o.ID] {
			p.stored[o.ID] = true
			codec, data := encodeBlob(o)
			p.blobs = append(p.blobs, blobRow{o.ID, o.Kind, codec, data})
			p.size += len(data)
		}
	}
	for i := range refs {
		r, known := &refs[i].state, false
		if r.at, known = p.at[r.target]; !known {
			r.at, _ = s.positions.get(r.target)
		}
		r.ownsLine = p.ends[r.at]
		delete(p.ends, r.at) // of two refs, one owns the line
	}
	return p, nil
}

// lookUpKnown looks up which objects of the batch the store has, and the positions of first parents.
func (s *store) lookUpKnown(ctx context.Context, p *planner, put []objects.Object, lookUpAll bool) error {
	ask, commits := s.idsToLookUp(p, put, lookUpAll)
	if len(ask) == 0 {
		return nil
	}
	some := false
	err := s.find(ctx, s, objects.Unique(ask), true, func(id objects.ID, f found) error {
		intact := f.err == nil
		if intact && f.object.Kind == objects.KindCommit && f.at.line != 0 {
			p.at[id] = f.at
		}
		if intact && p.put[id] != nil {
			p.stored[id], some = true, true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if some && commits && !lookUpAll {
		return s.lookUpKnown(ctx, p, put, true)
	}
	return nil
}

// idsToLookUp returns the ids that must be looked up: of commits that begin a line or that this process
// knows, and of their first parents, unless they are in the batch or it knows where they are; lookUpAll:
// of everything. hasCommits says that some are commits of the batch.
func (s *store) idsToLookUp(p *planner, put []objects.Object, lookUpAll bool) (ask []objects.ID, hasCommits bool) {
	for i := range put {
		o := &put[i]
		if o.Kind != objects.KindCommit {
			if lookUpAll {
				ask = append(ask, o.ID)
			}
			continue
		}
		parent := o.FirstParent()
		if _, again := s.positions.get(o.ID); !again && !lookUpAll && (p.put[parent] != nil || s.claimEnd(p, parent)) {
			continue
		}
		ask, hasCommits = append(ask, o.ID), true
		if _, known := p.at[parent]; !known && p.put[parent] == nil {
			ask = append(ask, parent)
		}
	}
	return ask, hasCommits
}

// claimEnd reports whether the write may extend the line whose last commit is last. It takes the end of the
// line for the write: no other write of this process extends it then.
func (s *store) claimEnd(p *planner, last objects.ID) (mayExtend bool) {
	at, known := p.at[last]
	if !known {
		if at, known = s.positions.get(last); !known {
			return false
		}
		p.at[last] = at
	}
	if _, own := s.ends.take(at); own {
		p.ends[at] = true
	}
	return p.ends[at]
}

// placeWithAncestors gives a commit its position, after its first parent; those of its first-parent
// ancestors that are in the batch come first.
func (p *planner) placeWithAncestors(o *objects.Object) {
	var todo []*objects.Object
	for o != nil && o.Kind == objects.KindCommit {
		if _, placed := p.at[o.ID]; placed || p.stored[o.ID] {
			break
		}
		todo = append(todo, o)
		o = p.put[o.FirstParent()]
	}
	for i := len(todo) - 1; i >= 0; i-- {
		p.placeCommit(todo[i])
	}
}

func (p *planner) placeCommit(o *objects.Object) {
	var at position
	before := p.at[o.FirstParent()]
	from := position{line: -1}
	if before.line != 0 {
		at = position{before.line, before.gen + 1}
	}
	if !p.ends[before] {
		// Random, so that no process has to ask. Should two choose the same one, the second insert fails
		// and is planned again.
		at.line, from = rand.Int64N(1<<62-1)+1, before
	}
	delete(p.ends, before)
	p.ends[at] = true
	row := commitRow{at: at, from: from, id: o.ID, head: pack.AppendRecord(nil, o)}
	if len(o.Links) > 0 {
		if c := p.put[o.Links[0]]; c != nil && isInline(c) {
			row.content, row.body = c.ID, append([]byte{}, c.Data...)
			p.stored[c.ID] = true
		}
	}
	p.at[o.ID] = at
	p.commits = append(p.commits, row)
	p.size += len(row.head) + len(row.body)
}

// isInline reports whether an object can be stored with the commit that links to it first.
func isInline(o *objects.Object) bool {
	return o.Kind == objects.KindContent && len(o.Data) < inlineSize && len(o.Parents) == 0 && len(o.Links) == 0
}
