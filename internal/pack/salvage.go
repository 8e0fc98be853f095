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
		p := tableParser{table: &Table{n: n, ids: idsWithoutCopy(bytes.Clone(ids)), rows: make([]row, n)}, arena: new(Arena), rest: header}
		p.parseHeader()
		size := len(header) - len(p.rest)
		if p.err != nil || 2*size+headerLength > len(table) {
			continue
		}
		p.rest = table[size : len(table)-size-headerLength]
		if p.takeColumns(); p.err == nil {
			tables = append(tables, p.salvageRows())
		}
	}
	return tables
}

// salvageRows makes the rows that are valid, and rows of kind 0 for the others. At a checkpoint it goes on with what the header says
// precedes the object, whatever it has parsed before.
func (p *tableParser) salvageRows() *Table {
	t, at := p.table, p.table.initialCounts()
	for i := range t.rows {
		if i > 0 && i%checkpointEvery == 0 {
			at = p.checkpoints[i/checkpointEvery-1]
		}
		valid := p.parseRow(i, &at)
		if from, size := t.Data(i); !valid || t.Kind(i) == objects.KindCommit && from+size > len(t.data) {
			t.rows[i] = row{parent: -1, link: -1, template: uint16(len(t.templates))}
		}
	}
	t.templates = append(t.templates, template{}) // of the objects that are invalid
	t.bodySize = min(at.data[sectionOther], maxData)
	return t
}
