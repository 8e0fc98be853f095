package postgres

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
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
	name   string
	state  refState
	prev   objects.ID
	record []byte // nil: the log entry is with another ref
}

// planner decides where the objects of a batch go.
type planner struct {
	write
	put       map[objects.ID]*objects.Object
	there     map[objects.ID]bool     // objects of the batch that are in the store
	at        map[objects.ID]position // of first parents, and of commits of the batch
	continued map[position]bool       // positions that a commit of the same line follows
	inlined   map[objects.ID]bool     // contents that went with a commit
	purges    uint64                  // as they were known before the write
}

// plan decides where the objects of a batch go. It asks the database where first parents are
// that this process does not know, and for root commits, whether they are there already.
// lookUpAll asks for everything: something was there of which this process did
// not know.
func (s *store) plan(ctx context.Context, b *objects.Batch, lookUpAll bool) (*planner, error) {
	p := &planner{
		put: make(map[objects.ID]*objects.Object, len(b.Put)), there: map[objects.ID]bool{}, at: map[objects.ID]position{},
		continued: map[position]bool{}, inlined: map[objects.ID]bool{},
	}
	p.copies, p.purges = b.Copies, s.purges.Load()
	for i := range b.Put {
		p.put[b.Put[i].ID] = &b.Put[i]
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
		if o := &b.Put[i]; o.Kind != objects.KindCommit && !p.inlined[o.ID] && !p.there[o.ID] {
			p.inlined[o.ID] = true
			codec, data := encodeBlob(o)
			p.blobs = append(p.blobs, blobRow{o.ID, o.Kind, codec, data})
			p.size += len(data)
		}
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
			p.there[id], some = true, true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if some && commits && !lookUpAll {
		return s.lookUpKnown(ctx, p, put, true)
	}
	return s.findContinued(ctx, p)
}

// idsToLookUp returns the ids that must be looked up: of commits whose first parent is not in the
// batch and of these parents, unless this process knows where the parent is; lookUpAll: of
// everything. hasCommits says that some are commits of the batch.
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
		at, known := s.positions.get(parent)
		switch {
		case !lookUpAll && p.put[parent] != nil:
			continue
		case !lookUpAll && known:
			p.at[parent] = at
			continue
		}
		ask, hasCommits = append(ask, o.ID), true
		if p.put[parent] == nil {
			ask = append(ask, parent)
		}
	}
	return ask, hasCommits
}

// findContinued finds the positions after which the line goes on with another commit.
func (s *store) findContinued(ctx context.Context, p *planner) error {
	var lines, gens []int64
	for _, at := range p.at {
		lines, gens = append(lines, at.line), append(gens, at.gen)
	}
	if len(lines) == 0 {
		return nil
	}
	return s.query(ctx, func(row pgx.CollectableRow) error {
		var at position
		err := row.Scan(&at.line, &at.gen)
		p.continued[at] = true
		return err
	}, `select a.line, a.gen from unnest($2::bigint[], $3::bigint[]) a (line, gen)
where exists (select from tract_tail t where t.repo = $1 and t.line = a.line and t.gen = a.gen + 1)
or exists (select from tract_line l where l.repo = $1 and l.line = a.line and l.sealed > a.gen + 1)`, s.repo, lines, gens)
}

// placeWithAncestors gives a commit its position, after its first parent; those of its first-parent
// ancestors that are in the batch come first.
func (p *planner) placeWithAncestors(o *objects.Object) {
	var todo []*objects.Object
	for o != nil && o.Kind == objects.KindCommit {
		if _, placed := p.at[o.ID]; placed || p.there[o.ID] {
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
	if before.line == 0 || p.continued[before] {
		// Random, so that no process has to ask. Should two choose the same one, the second insert fails
		// and is planned again.
		at.line, from = rand.Int64N(1<<62-1)+1, before
	}
	p.continued[before] = true
	row := commitRow{at: at, from: from, id: o.ID, head: pack.AppendRecord(nil, o)}
	if len(o.Links) > 0 {
		if c := p.put[o.Links[0]]; c != nil && isInline(c) {
			row.content, row.body = c.ID, append([]byte{}, c.Data...)
			p.inlined[c.ID] = true
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
