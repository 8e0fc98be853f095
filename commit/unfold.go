package commit

import (
	"errors"
	"math"
	"slices"

	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// rows are the commits of a sheet, or of a line in it. Those that were read are shared, and
// never changed.
type rows struct {
	sheet  *objects.Sheet
	forms  []laidForm
	known  map[string]*formed // by their tags: sheets of one history have the same again and again
	states []state            // of each object, or of each place of the line
	line   []int16
	whole  []Commit // those that a form and a state do not tell
	marks  []objects.ID
	edges  []objects.ID  // of those that are not folded
	author string        // of the last of these
	parent [1]objects.ID // of what is given out
	body   uint64        // that contents lie in, as in a spot; 0: it is not known
}

// laidForm is a form of the sheet.
type laidForm struct {
	*formed

	says  bool // they are contents
	shows bool // of the edges that are not in the form there is the origin alone
	quick bool // plain, and the origin, if there is one, is so told
}

// formed is what the commits of a form have in common.
type formed struct {
	Commit

	given      Commit  // the one that was given out last
	origin     int     // the place in the sheet of its origin; none: not known
	mark       int32   // its mark, as in a state; noMark: not known
	links      [3]int8 // the places of content, origin and label among its edges; -1: it has none
	parents    int
	degree     int // of links
	follows    uint64
	has        uint64 // which of content, origin and label there are
	other      bool   // they are no commits
	folded     bool
	says, sent bool // what it weighs counts
	marks      bool
	wrong      bool  // its tag makes no sense
	whole      bool  // a commit can be so without a rest
	plain      bool  // and is, mostly: an append upon another, without label or mark, whose size follows
	sends      int64 // which bits of its weight are sent: none or all
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

// What is not known of the one given out last.
const (
	none   = -1
	noMark = math.MinInt32
)

var errFold = errors.New("it was told in short, and makes no sense")

// read works out what the commits of a sheet do not say.
func (r *rows) read(s *objects.Sheet) {
	r.begin(s, s.Len())
	for i := range r.states {
		var before *state
		if p := s.Parent(i); p >= 0 {
			before = &r.states[p]
		}
		r.work(i, &r.states[i], before)
	}
}

// begin makes room for the states of n commits of a sheet.
func (r *rows) begin(s *objects.Sheet, n int) {
	r.sheet, r.forms, r.whole, r.marks, r.edges = s, r.forms[:0], r.whole[:0], r.marks[:0], r.edges[:0]
	for i := range s.Forms() {
		f := laidForm{formed: r.form(s, i), says: s.KindOf(i) == objects.KindContent}
		if f.folded {
			f.mark = noMark
			f.shows = f.links[1] >= 0 && s.Alone(i) == int(f.links[1])
			f.quick = f.plain && f.shows == (f.links[1] >= 0)
		}
		r.forms = append(r.forms, f)
	}
	if cap(r.states) < n {
		r.states = make([]state, n)
	}
	r.states = r.states[:n]
}

// work works out the state of an object from that of its first parent; nil: that is not
// in the sheet.
func (r *rows) work(i int, now, before *state) {
	row := &r.sheet.Rows()[i]
	f := r.forms[row.Form()].formed
	if now.whole = 0; f.other {
		return
	}
	if !f.folded {
		*now = state{}
		r.keep(i, now, before, r.raw)
	} else if row.Size() > 0 {
		r.keep(i, now, before, r.withRest)
	} else if size, ok := r.follow(row, f, now, before); ok && f.whole {
		now.whole = plain
		if now.add(f, size); f.marks {
			now.next = int32(i) + 1
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
	if parents > 0 {
		f.given.Parents = r.parent[:]
	}
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
	f.plain = f.whole && f.says && parents == 1 && f.follows == followsSize && f.links[2] < 0 && !f.marks
	if f.sent {
		f.sends = -1
	}
	return f
}

// follow takes over what follows from the first parent, and gives the size of the
// content, if that follows.
func (r *rows) follow(row *objects.Row, f *formed, now, before *state) (size int64, ok bool) {
	since := unzigzag(r.sheet.OwnOf(row))
	if f.parents == 0 {
		*now = state{ms: since, index: int32(f.Index)}
	} else {
		if before == nil || before.whole == 0 {
			return 0, false
		}
		now.depth, now.weight, now.ms = before.depth+1, before.weight, before.ms+since
		now.mark, now.next = before.next, before.next
		if now.index = int32(f.Index); f.follows&followsIndex != 0 {
			now.index = before.index + 1
		}
	}
	if f.follows&followsSize != 0 {
		if row.Link() < 0 {
			return 0, false
		}
		size = int64(r.sheet.Rows()[row.Link()].Size())
	}
	return size, true
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// add adds what a commit weighs alone.
func (now *state) add(f *formed, size int64) {
	if !f.says {
		return
	}
	own := f.Kind.Weight(size)
	now.weight.All += own
	now.weight.Sent += own & f.sends
}

// keep keeps the whole of a commit. One that makes no sense is none.
func (r *rows) keep(i int, now, before *state, read func(i int, c *Commit, now, before *state) error) {
	if len(r.whole) == cap(r.whole) {
		r.whole = slices.Grow(r.whole, r.toKeep(i))
	}
	r.whole = append(r.whole, Commit{})
	c := &r.whole[len(r.whole)-1]
	if read(i, c, now, before) != nil {
		r.whole = r.whole[:len(r.whole)-1]
		return
	}
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
		if f := &r.forms[r.sheet.Form(i)]; !f.other {
			if _, rest := r.sheet.Data(i); rest > 0 || !f.folded {
				n++
			}
		}
	}
	return n
}

// raw reads a commit that is not folded.
func (r *rows) raw(i int, c *Commit, _, _ *state) error {
	o, err := r.sheet.Object(i, &r.edges)
	if err == nil {
		err = c.read(&o, r.author)
	}
	if err == nil {
		r.author = c.Author
	}
	return err
}

// withRest reads a folded commit with a rest.
func (r *rows) withRest(i int, c *Commit, now, before *state) error {
	row := &r.sheet.Rows()[i]
	f := &r.forms[row.Form()]
	size, ok := r.follow(row, f.formed, now, before)
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
	now.add(f.formed, c.Size)
	if f.parents > 0 {
		c.Parents = make([]objects.ID, 1)
	}
	r.told(c, i, row, f, now)
	return c.check()
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
			c.Mark = r.markOf(now.mark) // ids may be worked out one after the other
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
	if now.mark != 0 {
		mark := r.markOf(now.mark)
		e.Raw(12, mark[:])
	}
	e.Uint(13, uint64(now.weight.All))
	e.Uint(14, uint64(now.weight.Sent))
	e.Uint(15, f.has)
	e.Uint(17, uint64(f.Covers))
	return e.Bytes()
}
