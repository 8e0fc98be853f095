package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tract-vcs/tract/objects"
)

// ParseTable parses the table of n objects that EncodeTable made. The result refers to ids
// and table, and is valid until the Reset of the arena, which may be nil. Every offset is
// checked: a damaged table may give wrong objects, but never memory outside of it or of
// the body.
func ParseTable(n int, ids, table []byte, a *Arena) (*Table, error) {
	if n <= 0 || n > MaxObjects || len(ids)%idSize != 0 || len(ids) < n*idSize {
		return nil, fmt.Errorf("%w: %d objects with %d bytes of ids", errTable, n, len(ids))
	}
	t := a.takeTable()
	t.n, t.ids = n, idsIn(ids)
	p := tableParser{table: t, rest: table, arena: a}
	p.header()
	header := table[:len(table)-len(p.rest)]
	if end := len(p.rest) - len(header) - headerLength; p.err == nil && (end < 0 || !isTrailer(p.rest[end:], header)) {
		p.fail("the header and its copy differ")
	} else if p.err == nil {
		p.rest = p.rest[:end:end]
		p.columns()
	}
	if p.err == nil {
		t.rows = a.takeRows(n)
		p.parseRows()
	}
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}

// A table ends with a copy of its header, without which nothing of the rest can be read,
// and the length of that: headerLength bytes.
const headerLength = 4

func appendTrailer(b, header []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, header...), uint32(len(header)))
}

// isTrailer reports whether b is what appendTrailer appends.
func isTrailer(b, header []byte) bool {
	n := len(header)
	return len(b) == n+headerLength && bytes.Equal(b[:n], header) && binary.BigEndian.Uint32(b[n:]) == uint32(n)
}

// tableParser is the state of a ParseTable.
type tableParser struct {
	table        *Table
	rowTemplates []rowTemplate // of the templates of the table
	arena        *Arena
	rest         []byte
	templates    column // of each object: the number of its template
	sizes        column
	checkpoints  []counts // before each 64th object, from the second on
	void         row      // of an object that is invalid
	err          error

	some struct{ templates, sizes, edges [checkpointEvery]uint32 } // numbers of the columns
}

// counts says how much precedes an object. The header has a checkpoint of it for each
// 64th object, so that damage in a column affects no object after the next one.
type counts struct {
	edge, sized int
	data        [parts]int // offset of the data of the next object
}

const checkpointEvery = 64

func (p *tableParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{errTable}, args...)...)
	}
}

// header parses the header, which says how to parse the rest.
func (p *tableParser) header() {
	t := p.table
	t.templates = p.arena.takeTemplates(p.number(t.n))
	for i := range t.templates {
		if p.readTemplate(&t.templates[i]); p.err != nil {
			return
		}
	}
	p.templates = p.column(t.n, 2)
	p.sizes = p.column(p.number(t.n), 4)
	t.explicit = p.column(p.number(t.n*2*objects.MaxEdges), 4)
	p.checkpoints = p.arena.takeCounts((t.n - 1) / checkpointEvery)
	t.contentSize = p.number(maxData)
	c := t.begin()
	for i := range p.checkpoints {
		c.edge += p.number(maxData)
		c.sized += p.number(maxData)
		for k := range c.data {
			c.data[k] += p.number(maxData)
		}
		p.checkpoints[i] = c
	}
}

// begin returns what precedes the first object.
func (t *Table) begin() (c counts) {
	c.data[partOther] = t.contentSize
	return c
}

// columns takes the columns and the data, which come after the header.
func (p *tableParser) columns() {
	for _, c := range []*column{&p.templates, &p.sizes, &p.table.explicit} {
		c.bytes = p.take(c.n * c.width)
	}
	p.table.data = p.rest
}

func (p *tableParser) byte() byte {
	if len(p.rest) == 0 {
		p.fail("it is truncated")
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

// number reads a number up to a limit; one that is not in its shortest form is invalid.
func (p *tableParser) number(limit int) int {
	if b := p.rest; len(b) > 0 && b[0] < 0x80 && int(b[0]) <= limit { // most are
		p.rest = b[1:]
		return int(b[0])
	}
	v, size := binary.Uvarint(p.rest)
	if size <= 0 || size > 1 && p.rest[size-1] == 0 || v > uint64(limit) {
		p.fail("a number is invalid or over %d", limit)
		return 0
	}
	p.rest = p.rest[size:]
	return int(v)
}

func (p *tableParser) take(n int) []byte {
	if n > len(p.rest) {
		p.fail("it is truncated")
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

// column reads the width of n numbers, at most maxWidth bytes.
func (p *tableParser) column(n, maxWidth int) column {
	width := int(p.byte())
	if width > maxWidth {
		p.fail("numbers of %d bytes", width)
		return column{}
	}
	return column{n: n, width: width}
}

// sizedTemplate is added to the kind of a template whose objects have an entry in the
// column of sizes.
const sizedTemplate = 0x80

func (p *tableParser) readTemplate(f *template) {
	kind := p.byte()
	*f = template{kind: objects.Kind(kind &^ sizedTemplate), sized: kind&sizedTemplate != 0}
	f.part = partOf(f.kind)
	f.parents, f.links = int32(p.number(objects.MaxEdges)), int32(p.number(objects.MaxEdges))
	f.deltas = p.take(int(f.parents + f.links))
	for k, delta := range f.deltas {
		f.farthest = max(f.farthest, delta)
		if delta == 0 {
			f.explicit++
			if k < int(f.parents) {
				f.before++
			}
		}
	}
	if f.parents > 0 && p.err == nil {
		f.parentDelta = f.deltas[0]
	}
	if f.links > 0 && p.err == nil {
		f.linkDelta = f.deltas[f.parents]
	}
	f.leads = f.parents > 0 && f.parentDelta == 0 || f.links > 0 && f.linkDelta == 0
	if !f.kind.Valid() {
		p.fail("a template of kind %d", kind)
	}
}

func (p *tableParser) makeRowTemplates() {
	t := p.table
	p.rowTemplates = p.arena.takeRowTemplates(len(t.templates))
	for k := range t.templates {
		p.rowTemplates[k] = t.templates[k].rows(k)
	}
}

// parseRows makes the rows of all objects.
func (p *tableParser) parseRows() {
	t, rows := p.table, p.table.rows
	p.makeRowTemplates()
	at := t.begin()
	for from := 0; from < len(rows); from += checkpointEvery {
		to := min(from+checkpointEvery, len(rows))
		then := counts{edge: t.explicit.n, sized: p.sizes.n}
		if to < len(rows) {
			then = p.checkpoints[from/checkpointEvery]
		}
		if p.parseSome(from, to, &at, then); p.err != nil {
			return
		}
		if to < len(rows) && at != then {
			p.fail("the columns do not fit the objects before %d", to)
			return
		}
	}
	if at.edge != t.explicit.n || at.sized != p.sizes.n ||
		at.data[partTable] != len(t.data) || at.data[partContent] != t.contentSize || at.data[partOther] > maxData {
		p.fail("the columns do not fit the objects")
	}
	t.bodySize = at.data[partOther]
}

// parseSome makes the rows of at most checkpointEvery objects; then is what precedes the
// object after them. An invalid object gets the row void, and parsing goes on. It reads their numbers from the columns all at once: reading them
// one by one would take most of the time.
func (p *tableParser) parseSome(from, to int, at *counts, then counts) {
	t, rows, rowTemplates := p.table, p.table.rows[:to], p.rowTemplates
	templates := &p.some.templates
	p.templates.read(templates[:to-from], from)
	sizes := p.some.sizes[:p.sizes.between(at.sized, then.sized)]
	p.sizes.read(sizes, at.sized)
	edges := p.some.edges[:t.explicit.between(at.edge, then.edge)]
	t.explicit.read(edges, at.edge)
	explicit, next, more := at.edge, 0, uint64(0)
	data := [4]int{at.data[0], at.data[1], at.data[2]} // one element for each number of two bits
	for i := from; i < len(rows); i++ {
		k := templates[uint(i)%checkpointEvery]
		if int(k) >= len(rowTemplates) {
			rows[i] = p.void
			p.fail("object %d has an unknown template", i)
			continue
		}
		f, size := &rowTemplates[k], 0
		valid := int(f.farthest) <= i
		if f.sized {
			if next < len(sizes) {
				size = int(sizes[next])
			}
			next++
			if uint(size-1) >= objects.MaxSize {
				size, valid = 0, false
			}
		}
		part := &data[f.part%4]
		rows[i] = f.row(i, *part, size, explicit)
		*part += size
		if f.how != noEdge {
			if at := explicit - at.edge; f.how == moreEdges || at >= len(edges) {
				more |= 1 << (uint(i) % checkpointEvery)
			} else if to := edges[at]; t.isEdge(i, int(to)) {
				rows[i].explicit = int(to)
			} else {
				valid = false
			}
		}
		explicit += f.explicit
		if !valid {
			rows[i] = p.void
			more &^= 1 << (uint(i) % checkpointEvery)
			p.fail("object %d has an invalid size or edge", i)
		}
	}
	for ; more > 0; more &= more - 1 { // the objects with other edges, a bit each
		i := from + bits.TrailingZeros64(more)
		r := &rows[i]
		if !p.explicitEdges(i, r.explicit, &t.templates[r.template()], r) {
			*r = p.void
			p.fail("object %d has an invalid edge", i)
		}
	}
	*at = counts{explicit, at.sized + next, [parts]int(data[:])}
}

// maxData is the most bytes of data that the objects of a table may have.
const maxData = 1 << 30

// explicitEdges checks the explicit edges of object i, and sets the first parent and the
// first link of its row if they are among them. edge is the first one in the column.
func (p *tableParser) explicitEdges(i, edge int, f *template, r *row) bool {
	t := p.table
	if int(f.explicit) > t.explicit.n-edge {
		return false
	}
	for k := range f.explicit {
		v := int(t.explicit.at(edge + int(k)))
		if !t.isEdge(i, v) {
			return false
		}
		if f.explicit == 1 {
			r.explicit = v
		}
		if v >= t.n {
			continue
		}
		if k == 0 && f.parents > 0 && f.parentDelta == 0 {
			r.setParent(v)
		}
		if k == f.before && f.links > 0 && f.linkDelta == 0 {
			r.setLink(v)
		}
	}
	return true
}

// isEdge reports whether object i may refer to an id: of an object before it, or of none
// of the table.
func (t *Table) isEdge(i, to int) bool { return to < i || to >= t.n && to < len(t.ids) }
