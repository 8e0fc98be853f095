package pack

import (
	"encoding/binary"

	"github.com/tract-vcs/tract/objects"
)

// SalvageTable parses what it can of a table that ParseTable refuses. A table has its
// header twice, and both are tried. An object that cannot be parsed has kind 0; the caller
// hashes the others.
func SalvageTable(n int, ids, table []byte) (tables []*Table) {
	if n <= 0 || n > MaxObjects || len(ids)%idSize != 0 || len(ids) < n*idSize {
		return nil
	}
	headers := [][]byte{table}
	if end := len(table) - headerLength; end >= 0 {
		if size := int(binary.BigEndian.Uint32(table[end:])); size <= end/2 {
			headers = append(headers, table[end-size:end])
		}
	}
	for _, header := range headers {
		p := tableParser{table: &Table{n: n, ids: idsIn(ids)}, rest: header}
		p.header()
		size := len(header) - len(p.rest)
		if p.err != nil || 2*size+headerLength > len(table) {
			continue
		}
		p.rest = table[size : len(table)-size-headerLength]
		if p.columns(); p.err == nil {
			tables = append(tables, p.salvage())
		}
	}
	return tables
}

// salvage makes the rows. At a checkpoint it goes on with what the header says precedes
// the object, whatever it has parsed before.
func (p *tableParser) salvage() *Table {
	t := p.table
	t.templates = append(t.templates, template{})
	last := len(t.templates) - 1
	lost := t.templates[last].rows(last)
	void := lost.row(0, 0, 0, 0)
	t.rows = make([]row, t.n)
	at := t.begin()
	for i := range t.rows {
		if i%checkpointEvery == 0 && i > 0 {
			at = p.checkpoints[i/checkpointEvery-1]
		}
		k := int(p.templates.at(i))
		if t.rows[i] = void; k >= last {
			continue
		}
		f := &t.templates[k]
		size, ok := 0, true
		if f.sized {
			size = p.size(at.sized)
			ok = size > 0
			at.sized++
		}
		rt := f.rows(k)
		r := rt.row(i, at.data[f.part], size, at.edge)
		at.data[f.part] += size
		all := [parts]int{len(t.data), t.contentSize, maxData}[f.part]
		ok = ok && int(f.farthest) <= i && at.edge+int(f.explicit) <= t.explicit.n && at.data[f.part] <= all
		edge := at.edge
		at.edge, t.bodySize = at.edge+int(f.explicit), min(at.data[partOther], maxData)
		if ok && p.explicitEdges(i, edge, f, &r) {
			t.rows[i] = r
		}
	}
	return t
}

// size returns a number of the column of sizes; 0: it is invalid.
func (p *tableParser) size(i int) int {
	if i < p.sizes.n {
		if size := int(p.sizes.at(i)); size <= objects.MaxSize {
			return size
		}
	}
	return 0
}
