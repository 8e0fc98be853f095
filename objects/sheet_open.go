package objects

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// OpenSheet reads a sheet of n objects as LaySheet made it. It keeps both, and is good
// as long as its room is; a nil room is memory of its own. Every place in it is
// checked: what a sheet says may be wrong, but it leads nowhere else.
func OpenSheet(n int, ids, table []byte, room *SheetRoom) (*Sheet, error) {
	if n <= 0 || n > SheetObjects || len(ids)%idSize != 0 || len(ids) < n*idSize {
		return nil, fmt.Errorf("%w: %d objects with %d bytes of ids", errSheet, n, len(ids))
	}
	s := room.takeSheet()
	s.n, s.ids = n, idsIn(ids)
	o := opening{sheet: s, rest: table, room: room}
	o.front()
	front := table[:len(table)-len(o.rest)]
	if end := len(o.rest) - len(front) - frontSize; o.err == nil && (end < 0 || !isFront(o.rest[end:], front)) {
		o.fail("it ends in another way than it begins")
	} else if o.err == nil {
		o.rest = o.rest[:end:end]
		o.columns()
	}
	if o.err == nil {
		s.rows = room.takeRows(n)
		o.fill(s.rows)
	}
	if o.err != nil {
		return nil, o.err
	}
	return s, nil
}

// frontSize is the size of what a sheet ends with: how long its front is, which stands
// before it once more. Without the front nothing of it can be read.
const frontSize = 4

func appendFront(b, front []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, front...), uint32(len(front)))
}

// isFront tells whether b is what appendFront adds.
func isFront(b, front []byte) bool {
	n := len(front)
	return len(b) == n+frontSize && bytes.Equal(b[:n], front) && binary.BigEndian.Uint32(b[n:]) == uint32(n)
}

// opening is an OpenSheet on its way.
type opening struct {
	sheet  *Sheet
	shapes []shape // of its forms
	room   *SheetRoom
	rest   []byte
	sizes  column
	form   column
	every  []counts // before each 64th object, from the second on
	err    error

	forms, sized, edges [countEvery]uint32 // of some objects
}

// counts is how much of everything comes before an object. It stands in the front for
// each 64th, so that damage to one of the others goes no further.
type counts struct {
	edge, sized int
	data        [parts]int // where that of the next one lies
}

const countEvery = 64

func (o *opening) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: "+format, append([]any{errSheet}, args...)...)
	}
}

// front reads what says how the rest is to be read.
func (o *opening) front() {
	s := o.sheet
	s.forms = o.room.takeForms(o.number(s.n))
	for i := range s.forms {
		if o.readForm(&s.forms[i]); o.err != nil {
			return
		}
	}
	o.form = o.column(s.n, 2)
	o.sizes = o.column(o.number(s.n), 4)
	s.apart = o.column(o.number(s.n*2*MaxEdges), 4)
	o.every = o.room.takeCounts((s.n - 1) / countEvery)
	s.words = o.number(maxBody)
	c := s.begin()
	for i := range o.every {
		c.edge += o.number(maxBody)
		c.sized += o.number(maxBody)
		for k := range c.data {
			c.data[k] += o.number(maxBody)
		}
		o.every[i] = c
	}
}

// begin is what comes before the first object.
func (s *Sheet) begin() (c counts) {
	c.data[inOthers] = s.words
	return c
}

// columns reads what stands behind the front.
func (o *opening) columns() {
	for _, c := range []*column{&o.form, &o.sizes, &o.sheet.apart} {
		c.bytes = o.take(c.n * c.width)
	}
	o.sheet.data = o.rest
}

func (o *opening) byte() byte {
	if len(o.rest) == 0 {
		o.fail("it is cut off")
		return 0
	}
	b := o.rest[0]
	o.rest = o.rest[1:]
	return b
}

// number reads a number up to a limit, in the fewest bytes it can have.
func (o *opening) number(limit int) int {
	if b := o.rest; len(b) > 0 && b[0] < 0x80 && int(b[0]) <= limit { // as most are
		o.rest = b[1:]
		return int(b[0])
	}
	v, size := binary.Uvarint(o.rest)
	if size <= 0 || size > 1 && o.rest[size-1] == 0 || v > uint64(limit) {
		o.fail("a number is none, or over %d", limit)
		return 0
	}
	o.rest = o.rest[size:]
	return int(v)
}

func (o *opening) take(n int) []byte {
	if n > len(o.rest) {
		o.fail("it is cut off")
		return nil
	}
	b := o.rest[:n:n]
	o.rest = o.rest[n:]
	return b
}

// column reads how wide n numbers are, of at most so many bytes.
func (o *opening) column(n, most int) column {
	width := int(o.byte())
	if width > most {
		o.fail("numbers of %d bytes", width)
		return column{}
	}
	return column{n: n, width: width}
}

// sizedForm is added to the kind of a form whose objects have sizes.
const sizedForm = 0x80

func (o *opening) readForm(f *form) {
	kind := o.byte()
	*f = form{kind: Kind(kind &^ sizedForm), sized: kind&sizedForm != 0}
	f.part = partOf(f.kind)
	f.parents, f.links = int32(o.number(MaxEdges)), int32(o.number(MaxEdges))
	f.steps = o.take(int(f.parents + f.links))
	for k, step := range f.steps {
		if f.reach = max(f.reach, step); step == 0 {
			if f.apart++; k < int(f.parents) {
				f.before++
			}
		}
	}
	if f.parents > 0 && o.err == nil {
		f.parentStep = f.steps[0]
	}
	if f.links > 0 && o.err == nil {
		f.linkStep = f.steps[f.parents]
	}
	f.leads = f.parents > 0 && f.parentStep == 0 || f.links > 0 && f.linkStep == 0
	if !f.kind.Valid() {
		o.fail("a form of kind %d", kind)
	}
}

// fill notes where everything of each object is.
func (o *opening) fill(rows []Row) {
	s := o.sheet
	o.shapes = o.room.takeShapes(len(s.forms))
	for k := range s.forms {
		o.shapes[k] = s.forms[k].shape(k)
	}
	at := s.begin()
	for from := 0; from < len(rows); from += countEvery {
		to := min(from+countEvery, len(rows))
		then := counts{edge: s.apart.n, sized: o.sizes.n}
		if to < len(rows) {
			then = o.every[from/countEvery]
		}
		if o.some(from, to, &at, then); o.err != nil {
			return
		}
		if to < len(rows) && at != then {
			o.fail("the objects before %d have more or less than they need", to)
			return
		}
	}
	if at.edge != s.apart.n || at.sized != o.sizes.n ||
		at.data[inSheet] != len(s.data) || at.data[inWords] != s.words || at.data[inOthers] > maxBody {
		o.fail("it has more or less than its objects need")
	}
	s.body = at.data[inOthers]
}

// some is fill for at most countEvery objects, before whose next as much comes as then
// says. Their numbers are taken from the columns together: one by one takes longer than
// all else.
func (o *opening) some(from, to int, at *counts, then counts) {
	s, rows, shapes := o.sheet, o.sheet.rows[:to], o.shapes
	o.form.some(o.forms[:to-from], from)
	sizes := o.sized[:o.sizes.between(at.sized, then.sized)]
	o.sizes.some(sizes, at.sized)
	edges := o.edges[:s.apart.between(at.edge, then.edge)]
	s.apart.some(edges, at.edge)
	apart, next, more := at.edge, 0, uint64(0)
	data := [4]int{at.data[0], at.data[1], at.data[2]} // a place for each number of two bits
	for i := from; i < len(rows); i++ {
		k := o.forms[uint(i)%countEvery]
		if int(k) >= len(shapes) {
			o.fail("object %d has a form that is not there", i)
			return
		}
		f, size := &shapes[k], 0
		if f.sized {
			if next < len(sizes) {
				size = int(sizes[next])
			}
			if next++; uint(size-1) >= MaxSize {
				o.fail("object %d has no size", i)
				return
			}
		}
		part := &data[f.part%4]
		rows[i] = f.row(i, *part, size, apart)
		*part += size
		if int(f.reach) > i {
			o.fail("object %d leads to nothing", i)
			return
		}
		if f.edges != noEdge {
			if at := apart - at.edge; f.edges == moreEdges || at >= len(edges) {
				more |= 1 << (uint(i) % countEvery)
			} else if to := edges[at]; s.under(i, int(to)) {
				rows[i].setApart(int(to))
			} else {
				o.fail("object %d leads to nothing", i)
				return
			}
		}
		apart += f.apart
	}
	for ; more > 0; more &= more - 1 { // objects whose edges are of another kind, a bit for each
		i := from + bits.TrailingZeros64(more)
		in := &rows[i]
		if !o.lead(i, in.Apart(), &s.forms[in.Form()], in) {
			o.fail("object %d leads to nothing", i)
			return
		}
	}
	*at = counts{apart, at.sized + next, [parts]int(data[:])}
}

// maxBody is most data that the objects of a sheet may have.
const maxBody = 1 << 30

// lead checks the edges of object i that are in the column from one on, and notes the
// first parent and the first link if they are among them.
func (o *opening) lead(i, edge int, f *form, in *Row) bool {
	s := o.sheet
	if int(f.apart) > s.apart.n-edge {
		return false
	}
	for k := range f.apart {
		v := int(s.apart.at(edge + int(k)))
		if !s.under(i, v) {
			return false
		}
		if f.apart == 1 {
			in.setApart(v)
		}
		if v >= s.n {
			continue
		}
		if k == 0 && f.parents > 0 && f.parentStep == 0 {
			in.setParent(v)
		}
		if k == f.before && f.links > 0 && f.linkStep == 0 {
			in.setLink(v)
		}
	}
	return true
}

// under tells whether object i may lead to a place: to one before it, or elsewhere.
func (s *Sheet) under(i, to int) bool { return to < i || to >= s.n && to < len(s.ids) }
