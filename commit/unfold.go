package commit

import (
	"errors"
	"slices"
	"time"

	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// rows are the commits of a sheet. Those that were read are shared, and never changed.
type rows struct {
	sheet  *objects.Sheet
	forms  []*formed
	known  map[string]*formed // by their tags: sheets of one history have the same again and again
	states []state            // of each object
	whole  []Commit           // those that a form and a state do not tell
	marks  []objects.ID
	edges  []objects.ID // of those that are not folded
}

// formed is what the commits of a form have in common.
type formed struct {
	Commit

	given      Commit  // one of them, as it is given out
	links      [3]int8 // the places of content, origin and label among its edges; -1: it has none
	parents    int
	degree     int // of links
	follows    uint64
	has        uint64 // which of content, origin and label there are
	other      bool   // they are no commits
	folded     bool
	says, sent bool // what it weighs counts
	marks      bool
	wrong      bool // its tag makes no sense
	whole      bool // a commit can be so without a rest
}

// state is what follows for a commit from those before it.
type state struct {
	depth  uint64
	weight Weight
	ms     int64
	mark   int32 // the mark: of an object of the sheet its place, from 1; of the list its place, from -1 down; 0: none
	next   int32 // that of the commits upon it
	index  int32
	whole  int32 // the place in the list of whole ones, from 1; plain: it is not in it; 0: it is no commit
}

const plain = -1

var errFold = errors.New("it was told in short, and makes no sense")

// read works out what the commits of a sheet do not say.
func (r *rows) read(s *objects.Sheet) {
	r.sheet, r.forms, r.whole, r.marks, r.edges = s, r.forms[:0], r.whole[:0], r.marks[:0], r.edges[:0]
	for i := range s.Forms() {
		r.forms = append(r.forms, r.form(s, i))
	}
	n := s.Len()
	if cap(r.states) < n {
		r.states = make([]state, n)
	}
	r.states = r.states[:n]
	for i := range r.states {
		f, now := r.forms[s.Form(i)], &r.states[i]
		if now.whole = 0; f.other {
			continue
		}
		if !f.folded {
			*now = state{}
			r.keep(i, r.raw)
		} else if _, rest := s.Data(i); rest > 0 {
			r.keep(i, r.withRest)
		} else if size, ok := r.follow(i, f, now); ok && f.whole {
			now.whole = plain
			if now.add(f, size); f.marks {
				now.next = int32(i) + 1
			}
		}
	}
}

// What objects of other kinds have in common, and commits that are not folded.
var (
	otherForm = &formed{other: true}
	rawForm   = &formed{}
)

// knownForms is most forms that are kept from sheet to sheet.
const knownForms = 256

// form gives what the commits of a form have in common.
func (r *rows) form(s *objects.Sheet, i int) *formed {
	tag := s.Tag(i)
	if len(tag) == 0 && s.KindOf(i) != objects.KindCommit {
		return otherForm
	} else if len(tag) == 0 {
		return rawForm
	}
	parents, links := s.Degree(i)
	if f := r.known[string(tag)]; f != nil && f.parents == parents && f.degree == links {
		return f
	}
	if r.known == nil || len(r.known) >= knownForms {
		r.known = map[string]*formed{}
	}
	f := newForm(tag, parents, links)
	r.known[string(tag)] = f
	return f
}

// newForm reads a tag.
func newForm(tag []byte, parents, links int) *formed {
	f := &formed{folded: true, parents: parents, degree: links}
	more, err := f.decode(tag, tagFields)
	f.follows, f.has = more.follows, more.has
	at := 0
	for k := range f.links {
		if f.links[k] = -1; more.has&(1<<k) != 0 {
			f.links[k] = int8(parents + at)
			at++
		}
	}
	if f.wrong = err != nil || at != links || parents > 1; f.wrong {
		return f
	}
	f.says = f.Op == Append
	f.sent = f.says && f.levelAlone() != priority.Skip
	f.marks = f.Marks()
	f.given = f.Commit
	probe := f.Commit
	probe.Parents, probe.Depth = make([]objects.ID, parents), uint64(parents)
	if f.links[0] >= 0 {
		probe.Content = objects.ID{1}
	}
	f.whole = probe.check() == nil
	return f
}

// follow takes over what follows from the first parent, and gives the size of the
// content, if that follows.
func (r *rows) follow(i int, f *formed, now *state) (size int64, ok bool) {
	s := r.sheet
	own := s.Own(i)
	since := int64(own>>1) ^ -int64(own&1)
	if f.parents == 0 {
		*now = state{ms: since, index: int32(f.Index)}
	} else {
		p := s.Parent(i)
		if p < 0 || r.states[p].whole == 0 {
			return 0, false
		}
		before := &r.states[p]
		now.depth, now.weight, now.ms = before.depth+1, before.weight, before.ms+since
		now.mark, now.next = before.next, before.next
		if now.index = int32(f.Index); f.follows&followsIndex != 0 {
			now.index = before.index + 1
		}
	}
	if f.follows&followsSize != 0 {
		k := s.Link(i)
		if k < 0 {
			return 0, false
		}
		_, n := s.Data(k)
		size = int64(n)
	}
	return size, true
}

// add adds what a commit weighs alone.
func (now *state) add(f *formed, size int64) {
	if !f.says {
		return
	}
	own := f.Kind.Weight(size)
	if now.weight.All += own; f.sent {
		now.weight.Sent += own
	}
}

// keep keeps the whole of a commit. One that makes no sense is none.
func (r *rows) keep(i int, read func(i int, c *Commit) error) {
	if len(r.whole) == cap(r.whole) {
		r.whole = slices.Grow(r.whole, r.toKeep(i))
	}
	r.whole = append(r.whole, Commit{})
	c := &r.whole[len(r.whole)-1]
	if read(i, c) != nil {
		r.whole = r.whole[:len(r.whole)-1]
		return
	}
	now := &r.states[i]
	*now = state{depth: c.Depth, weight: c.Weight, ms: c.Time.UnixMilli(), mark: now.mark, index: int32(c.Index), whole: int32(len(r.whole))}
	if now.mark == 0 && !c.Mark.IsZero() {
		r.marks = append(r.marks, c.Mark)
		now.mark = -int32(len(r.marks))
	}
	if now.next = now.mark; c.Marks() {
		now.next = int32(i) + 1
	}
}

// toKeep counts the commits from a place on that may be kept.
func (r *rows) toKeep(from int) (n int) {
	for i := from; i < r.sheet.Len(); i++ {
		if f := r.forms[r.sheet.Form(i)]; !f.other {
			if _, rest := r.sheet.Data(i); rest > 0 || !f.folded {
				n++
			}
		}
	}
	return n
}

// raw reads a commit that is not folded.
func (r *rows) raw(i int, c *Commit) error {
	o, err := r.sheet.Object(i, &r.edges)
	if err != nil {
		return err
	}
	return c.read(&o, "")
}

// withRest reads a folded commit with a rest.
func (r *rows) withRest(i int, c *Commit) error {
	f, now := r.forms[r.sheet.Form(i)], &r.states[i]
	size, ok := r.follow(i, f, now)
	if f.wrong || !ok {
		return errFold
	}
	*c = f.Commit
	if _, err := c.decode(r.sheet.Rest(i), restFields); err != nil {
		return err
	}
	if f.follows&followsSize != 0 {
		c.Size = size
	}
	now.add(f, c.Size)
	if f.parents > 0 {
		c.Parents = make([]objects.ID, 1)
	}
	r.told(c, i, r.sheet.Row(i), f, now)
	return c.check()
}

// told fills in what the sheet and the state say of a commit that has its form. It has
// room for its parents.
func (r *rows) told(c *Commit, i int, row *objects.Row, f *formed, now *state) {
	s := r.sheet
	if c.ID = *s.ID(i); f.parents > 0 {
		c.Parents[0] = *s.ID(int(row.Parent))
	}
	if k := int(row.Link); f.links[0] >= 0 && k < 0 {
		c.Content = *s.Edge(i, int(f.links[0]))
	} else if f.links[0] >= 0 {
		if c.Content = *s.ID(k); f.follows&followsSize != 0 {
			c.Size = int64(s.Row(k).Size)
		}
	}
	if f.links[1] >= 0 {
		c.Origin = *s.Edge(i, int(f.links[1]))
	}
	if f.links[2] >= 0 {
		c.Label = *s.Edge(i, int(f.links[2]))
	}
	c.Index, c.Time = int(now.index), time.UnixMilli(now.ms).UTC()
	c.Depth, c.Weight = now.depth, now.weight
	if mark := r.markOf(now); mark != nil {
		c.Mark = *mark
	} else {
		c.Mark = objects.ID{}
	}
}

// markOf is the mark of a commit; nil: it has none.
func (r *rows) markOf(now *state) *objects.ID {
	switch {
	case now.mark > 0:
		return r.sheet.ID(int(now.mark) - 1)
	case now.mark < 0:
		return &r.marks[-now.mark-1]
	}
	return nil
}

// at gives a commit of the sheet, which is good until the next one is asked for. It
// has its parent in room.
func (r *rows) at(i int, room *[1]objects.ID) (*Commit, error) {
	now := &r.states[i]
	if now.whole == 0 {
		return nil, &objects.CorruptError{ID: *r.sheet.ID(i), Cause: errFold}
	} else if now.whole > 0 {
		return &r.whole[now.whole-1], nil
	}
	row := r.sheet.Row(i)
	f := r.forms[row.Form]
	c := &f.given // a copy for each would take longer than all else
	if c.Block != nil || c.From != nil || c.Erased != nil || !c.Words.IsZero() {
		c.Block, c.From, c.Words, c.Erased = nil, nil, Label{}, nil
	}
	if f.parents > 0 {
		c.Parents = room[:]
	}
	r.told(c, i, row, f, now)
	return c, nil
}

// Data is objects.Unfolded.
func (r *rows) Data(i int, room []byte) ([]byte, error) {
	now := &r.states[i]
	if now.whole == 0 {
		return nil, errFold
	}
	e := canon.NewEncoder(room)
	if now.whole > 0 {
		c := r.whole[now.whole-1]
		if now.mark > 0 {
			c.Mark = *r.markOf(now) // ids may be worked out one after the other
		}
		return c.record(e), nil
	}
	return r.record(e, i, now), nil
}

// record is the record of what plain fills in, without doing so: of a commit that has
// no target, key or range.
func (r *rows) record(e canon.Encoder, i int, now *state) []byte {
	f := r.forms[r.sheet.Form(i)]
	size := f.Size
	if f.follows&followsSize != 0 {
		_, n := r.sheet.Data(r.sheet.Link(i))
		size = int64(n)
	}
	e.Uint(1, uint64(f.Op))
	e.Uint(2, uint64(f.Kind))
	e.Uint(3, uint64(f.Role))
	e.Uint(4, uint64(now.index))
	e.Uint(5, uint64(size))
	e.Uint(7, uint64(f.Priority))
	e.Int(8, now.ms)
	e.String(9, f.Author)
	e.Uint(11, now.depth)
	if mark := r.markOf(now); mark != nil {
		e.Raw(12, mark[:])
	}
	e.Uint(13, uint64(now.weight.All))
	e.Uint(14, uint64(now.weight.Sent))
	e.Uint(15, f.has)
	e.Uint(17, uint64(f.Covers))
	return e.Bytes()
}
