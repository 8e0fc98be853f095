package objects

import "encoding/binary"

// SalvageSheet makes what it can of a sheet that OpenSheet refuses. Its front stands in
// it twice, and each is tried. What makes no sense is an object of kind 0, and whatever
// it gives has to be hashed.
func SalvageSheet(n int, ids, table []byte) (sheets []*Sheet) {
	if n <= 0 || n > SheetObjects || len(ids)%idSize != 0 || len(ids) < n*idSize {
		return nil
	}
	fronts := [][]byte{table}
	if end := len(table) - frontSize; end >= 0 {
		if size := int(binary.BigEndian.Uint32(table[end:])); size <= end/2 {
			fronts = append(fronts, table[end-size:end])
		}
	}
	for _, front := range fronts {
		o := opening{sheet: &Sheet{n: n, ids: idsIn(ids)}, rest: front}
		o.front()
		size := len(front) - len(o.rest)
		if o.err != nil || 2*size+frontSize > len(table) {
			continue
		}
		o.rest = table[size : len(table)-size-frontSize]
		if o.columns(); o.err == nil {
			sheets = append(sheets, o.salvage())
		}
	}
	return sheets
}

// salvage makes the sheet. Where the front says how much comes before an object it is
// believed, and not what was found so far.
func (o *opening) salvage() *Sheet {
	s := o.sheet
	s.forms = append(s.forms, form{})
	last := len(s.forms) - 1
	lost := s.forms[last].shape(last)
	void := lost.row(0, 0, 0, 0)
	s.rows = make([]Row, s.n)
	at := s.begin()
	for i := range s.rows {
		if i%countEvery == 0 && i > 0 {
			at = o.every[i/countEvery-1]
		}
		k := int(o.form.at(i))
		if s.rows[i] = void; k >= last {
			continue
		}
		f := &s.forms[k]
		size, ok := 0, true
		if f.sized {
			size = o.size(at.sized)
			ok = size > 0
			at.sized++
		}
		how := f.shape(k)
		in := how.row(i, at.data[f.part], size, at.edge)
		at.data[f.part] += size
		all := [parts]int{len(s.data), s.words, maxBody}[f.part]
		ok = ok && int(f.reach) <= i && at.edge+int(f.apart) <= s.apart.n && at.data[f.part] <= all
		edge := at.edge
		at.edge, s.body = at.edge+int(f.apart), min(at.data[inOthers], maxBody)
		if ok && o.lead(i, edge, f, &in) {
			s.rows[i] = in
		}
	}
	return s
}

// size is a size of the column; 0: it is none.
func (o *opening) size(i int) int {
	if i < o.sizes.n {
		if size := int(o.sizes.at(i)); size <= MaxSize {
			return size
		}
	}
	return 0
}
