package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tract-vcs/tract/internal/hugepage"
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
	if a == nil {
		a = new(Arena)
	}
	t := &hugepage.Take(&a.tables, 1)[0]
	*t = Table{n: n, ids: idsWithoutCopy(ids)}
	p := tableParser{table: t, rest: table, arena: a}
	p.parseHeader()
	header := table[:len(table)-len(p.rest)]
	if end := len(p.rest) - len(header) - headerLength; p.err == nil && (end < 0 || !isTrailer(p.rest[end:], header)) {
		p.fail("the header and its copy differ")
	} else if p.err == nil {
		p.rest = p.rest[:end:end]
		p.takeColumns()
	}
	if p.err == nil {
		t.rows = hugepage.Take(&a.rows, n)
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
	table       *Table
	arena       *Arena
	rest        []byte
	templates   column // of each object: the number of its template
	sizes       column
	checkpoints []counts // before each 64th object, from the second on
	err         error
}

// counts says how much precedes an object. The header has a checkpoint of it for each
// 64th object, so that damage in a column affects no object after the next one.
type counts struct {
	explicit, sized int
	data            [sections]int // offset of the data of the next object
}

const checkpointEvery = 64

func (p *tableParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{errTable}, args...)...)
	}
}

// parseHeader parses the header, which says how to parse the rest.
func (p *tableParser) parseHeader() {
	t := p.table
	t.templates = hugepage.Take(&p.arena.templates, p.readNumber(t.n))
	for i := range t.templates {
		if p.readTemplate(&t.templates[i]); p.err != nil {
			return
		}
	}
	p.templates = column{n: t.n, width: p.readWidth(2)}
	p.sizes = column{n: p.readNumber(t.n), width: p.readWidth(4)}
	t.explicitTargets = column{n: p.readNumber(t.n * 2 * objects.MaxEdges), width: p.readWidth(4)}
	p.checkpoints = hugepage.Take(&p.arena.counts, (t.n-1)/checkpointEvery)
	t.contentSize = p.readNumber(maxData)
	c := t.initialCounts()
	for i := range p.checkpoints {
		c.explicit += p.readNumber(maxData)
		c.sized += p.readNumber(maxData)
		for k := range c.data {
			c.data[k] += p.readNumber(maxData)
		}
		p.checkpoints[i] = c
	}
}

// initialCounts returns what precedes the first object.
func (t *Table) initialCounts() (c counts) {
	c.data[sectionOther] = t.contentSize
	return c
}

// takeColumns takes the columns and the data, which come after the header.
func (p *tableParser) takeColumns() {
	for _, c := range []*column{&p.templates, &p.sizes, &p.table.explicitTargets} {
		c.bytes = p.take(c.n * c.width)
	}
	p.table.data = p.rest
}

func (p *tableParser) readByte() byte {
	if len(p.rest) == 0 {
		p.fail("it is truncated")
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

// readNumber reads a number up to a limit; one that is not in its shortest form is invalid.
func (p *tableParser) readNumber(limit int) int {
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

// readWidth reads how many bytes each number of a column has, up to a limit.
func (p *tableParser) readWidth(limit int) int {
	width := int(p.readByte())
	if width > limit {
		p.fail("numbers of %d bytes", width)
		return 0
	}
	return width
}

// sizedTemplate is added to the kind of a template whose objects have an entry in the
// column of sizes.
const sizedTemplate = 0x80

func (p *tableParser) readTemplate(f *template) {
	kind := p.readByte()
	*f = template{kind: objects.Kind(kind &^ sizedTemplate), sized: kind&sizedTemplate != 0}
	f.parents, f.links = p.readNumber(objects.MaxEdges), p.readNumber(objects.MaxEdges)
	f.deltas = p.take(f.parents + f.links)
	if !f.kind.Valid() {
		p.fail("a template of kind %d", kind)
	}
}

// parseRows makes the rows of all objects.
func (p *tableParser) parseRows() {
	t, at := p.table, p.table.initialCounts()
	for i := range t.rows {
		if i > 0 && i%checkpointEvery == 0 && at != p.checkpoints[i/checkpointEvery-1] {
			p.fail("the columns do not fit the objects before %d", i)
			return
		}
		if !p.parseRow(i, &at) {
			p.fail("object %d has an invalid template, size or edge", i)
			return
		}
	}
	if at.explicit != t.explicitTargets.n || at.sized != p.sizes.n ||
		at.data[sectionTable] != len(t.data) || at.data[sectionContent] != t.contentSize || at.data[sectionOther] > maxData {
		p.fail("the columns do not fit the objects")
	}
	t.bodySize = at.data[sectionOther]
}

// maxData is the most bytes of data that the objects of a table may have.
const maxData = 1 << 30

// parseRow makes the row of object i, and reports whether it is valid. at is what precedes
// the object, and then what precedes the next one.
func (p *tableParser) parseRow(i int, at *counts) (valid bool) {
	t, number := p.table, p.templates.at(i)
	if number >= len(t.templates) {
		return false
	}
	f := &t.templates[number]
	data := &at.data[sectionOf(f.kind)]
	r := row{from: uint32(*data), firstExplicit: int32(at.explicit), parent: -1, link: -1, template: uint16(number)}
	valid = true
	if f.sized {
		size := 0
		if at.sized < p.sizes.n {
			size = p.sizes.at(at.sized)
		}
		at.sized++
		if valid = size > 0 && size <= objects.MaxSize; valid {
			r.size = uint32(size)
			*data += size
		}
	}
	for k, delta := range f.deltas {
		to := i - int(delta)
		if delta == 0 {
			to = len(t.ids)
			if at.explicit < t.explicitTargets.n {
				to = t.explicitTargets.at(at.explicit)
			}
			at.explicit++
		}
		switch { // an object refers to those before it, or to ids that are not of the table
		case to < 0 || to >= i && to < t.n || to >= len(t.ids):
			valid = false
		case to >= t.n:
		case k == f.parents:
			r.link = int16(to)
		case k == 0:
			r.parent = int16(to)
		}
	}
	t.rows[i] = r
	return valid
}
