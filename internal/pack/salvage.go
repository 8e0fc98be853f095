package pack

import (
	"bytes"
	"encoding/binary"

	"github.com/tract-vcs/tract/objects"
)

// SalvageTable parses what it can of a table that ParseTable refuses. A table has its
// header twice, and both are tried. An object that cannot be parsed has kind 0; the caller
// hashes the others, and may change ids of the table, which are a copy.
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
		p := tableParser{table: &Table{n: n, ids: idsIn(bytes.Clone(ids))}, rest: header}
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

// salvage makes the rows that are valid. At a checkpoint it goes on with what the header says
// precedes the object, whatever it has parsed before.
func (p *tableParser) salvage() *Table {
	t := p.table
	p.makeRowTemplates()
	void := template{}
	t.templates = append(t.templates, void)
	lost := void.rows(len(t.templates) - 1)
	p.void = lost.row(0, 0, 0, 0)
	t.rows = make([]row, t.n)
	at := t.begin()
	for from := 0; from < t.n; from += checkpointEvery {
		if from > 0 {
			at = p.checkpoints[from/checkpointEvery-1]
		}
		p.parseSome(from, min(from+checkpointEvery, t.n), &at, counts{edge: t.explicit.n, sized: p.sizes.n})
	}
	t.bodySize = min(at.data[partOther], maxData)
	for i := range t.rows {
		if r := &t.rows[i]; t.Kind(i) == objects.KindCommit && r.data()+r.size() > len(t.data) {
			*r = p.void
		}
	}
	return t
}
