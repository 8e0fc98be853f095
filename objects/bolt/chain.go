package bolt

import (
	"context"
	"errors"
	"iter"

	"github.com/tract-vcs/tract/objects"
)

// Chain is objects.Reader.
func (s *store) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		a := &ahead{store: s, ctx: ctx, options: o, scan: new(scanning)}
		objects.Walk(ctx, a.get, tip, o)(yield)
	}
}

// ahead reads ahead of a walk: it reads a page of commits, with their content,
// at one look, and gives them out one by one.
type ahead struct {
	store   *store
	ctx     context.Context //nolint:containedctx // a walk is one call
	options objects.ChainOptions
	runs    [2][]objects.Object // two, since a walk to a fork point goes down two lines in turn
	room    [2][]objects.Object // what they are pieces of, used again
	last    int                 // the run read last
	size    int                 // of the last page
	packs   int                 // that it may read
	after   uint32              // the pack read last; before it the next is looked for
	scan    *scanning
	erased  map[objects.ID]error // content of runs that was erased
}

// get gives every object that was read at most once, so that it is the caller's own.
func (a *ahead) get(id objects.ID) (objects.Object, error) {
	if err := a.erased[id]; err != nil {
		return objects.Object{ID: id}, err
	}
	for i, run := range a.runs {
		for k := range run {
			if run[k].ID == id {
				a.runs[i] = run[k+1:]
				return run[k], nil
			}
		}
	}
	if len(a.runs[a.last]) > 0 {
		a.last = 1 - a.last
	}
	run, err := a.read(id, a.room[a.last][:0])
	if err != nil {
		return objects.Object{}, err
	}
	a.room[a.last], a.runs[a.last] = run, run[1:]
	return run[0], nil
}

// read reads an object and those that a walk will ask for next. It begins with
// few: many a walk ends soon.
func (a *ahead) read(id objects.ID, run []objects.Object) ([]objects.Object, error) {
	a.size = min(max(4*a.size, 8), pageObjects)
	limit := a.size
	if a.options.Limit > 0 {
		limit = min(limit, 2*a.options.Limit)
	}
	a.packs = min(max(2*a.packs, 1), pagePacks)
	if len(a.erased) > pageKeys {
		clear(a.erased)
	}
	err := a.store.view(a.ctx, "read", func(l *look) error {
		if a.packs > 1 {
			l.scan = a.scan
		}
		line := &stretch{next: id, run: run}
		err := a.follow(l, line, limit)
		run = line.run
		return first(run, err)
	})
	return run, err
}

// stretch is a piece of a line on its way.
type stretch struct {
	next  objects.ID // zero: there is no more
	run   []objects.Object
	size  int // bytes
	packs int
}

// follow goes down a line as far as one look goes: at least limit objects, or what
// some packs hold.
func (a *ahead) follow(l *look, line *stretch, limit int) error {
	more := func() bool {
		return len(line.run) < limit && line.size < pageBytes ||
			line.packs > 0 && line.packs < a.packs && line.size < pageBytes
	}
	for !line.next.IsZero() && more() {
		p, slot, err := l.packOf(line.next, a.after)
		if err != nil {
			return err
		}
		if a.after = 0; p == nil {
			if err := a.alone(l, line); err != nil {
				return err
			}
			continue
		}
		a.after = p.n
		line.packs++
		if err := a.walkPack(l, p, slot, line); err != nil {
			return err
		}
	}
	return nil
}

// alone adds a commit that lies in no pack, and its content.
func (a *ahead) alone(l *look, line *stretch) error {
	o, err := l.object(line.next)
	if err != nil {
		return err
	}
	line.add(o)
	if a.options.Content && len(o.Links) > 0 {
		content, err := l.object(o.Links[0])
		if err == nil {
			line.add(content)
		}
		a.noteErased(content.ID, err)
	}
	line.next = objects.ID{}
	if len(o.Parents) > 0 {
		line.next = o.Parents[0]
	}
	return nil
}

func (s *stretch) add(o objects.Object) { s.run, s.size = append(s.run, o), s.size+len(o.Data) }

// noteErased notes that content was erased, if that is what an error says, so that the
// walk need not ask for it.
func (a *ahead) noteErased(id objects.ID, err error) bool {
	if !errors.Is(err, objects.ErrPurged) {
		return false
	}
	if a.erased == nil {
		a.erased = map[objects.ID]error{}
	}
	a.erased[id] = err
	return true
}

// pagePacks is most packs that a walk reads at one look.
const pagePacks = 8

// first lets an error out only when there is nothing before it: if the walk comes
// that far, it asks again.
func first(run []objects.Object, err error) error {
	if len(run) > 0 {
		return nil
	}
	return err
}

// packOf gives the pack that an object lies in, and where; nil: it is in none. It
// looks first where a line comes from that begins a pack: at the end of the one
// before.
func (l *look) packOf(id objects.ID, after uint32) (*pack, int, error) {
	if l.record(id) != nil {
		return nil, 0, nil
	}
	if after > 1 {
		p, err := l.pack(after - 1)
		if err == nil && p.has(p.Len()-1, id) {
			return p, p.Len() - 1, nil
		}
	}
	at, ok, err := l.locate(id)
	if err != nil || !ok {
		return nil, 0, err
	}
	p, err := l.pack(at.pack)
	return p, at.slot, damaged(id, err)
}

// walkPack adds the line that ends at a slot as far as it lies in the pack. It ends
// before content that cannot be read: if the walk comes that far, it asks for it.
func (a *ahead) walkPack(l *look, p *pack, slot int, line *stretch) error {
	limit := p.Len()
	if a.options.Limit > 0 {
		limit = min(limit, a.options.Limit)
	}
	said := &wordsOf{look: l, pack: p}
	if a.options.Content && min(limit, slot) > 16 {
		said.read()
	}
	line.size += p.Len()*idSize + len(said.body)
	line.next = objects.ID{}
	said.room = make([]objects.ID, 0, 2*min(limit, slot+1))
	for ; slot >= 0 && limit > 0; limit-- {
		var err error
		o := p.Object(slot, &said.room)
		if o.Kind != objects.KindCommit || !p.sound {
			o, err = l.packed(p, slot)
		}
		if err != nil {
			return err
		}
		line.run = append(line.run, o)
		if a.options.Content && len(o.Links) > 0 {
			content, err := said.of(slot, o)
			switch there := a.noteErased(content.ID, err); {
			case err == nil:
				line.run = append(line.run, content)
			case !there:
				return err
			}
		}
		if slot = p.Parent(slot); slot < 0 && len(o.Parents) > 0 {
			line.next = o.Parents[0]
		}
	}
	return nil
}

// wordsOf gives the content of the commits of a pack.
type wordsOf struct {
	look  *look
	pack  *pack
	body  []byte // nil: one by one, to see which of them is damaged
	sound bool
	room  []objects.ID
}

func (w *wordsOf) read() {
	body, sound, err := w.look.body(w.pack)
	if err == nil {
		w.body, w.sound = body, sound
	}
}

// of is the content of the commit at a slot.
func (w *wordsOf) of(slot int, c objects.Object) (objects.Object, error) {
	if k := w.pack.Link(slot); k >= 0 && w.body != nil && !w.pack.isPurged(k) {
		return w.pack.whole(k, w.body, w.sound, nil, &w.room)
	}
	return w.look.object(c.Links[0])
}
