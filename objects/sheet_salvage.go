package objects

// SalvageSheet makes what it can of a sheet that OpenSheet refuses. The places of
// everything are told by what comes before, so it is read twice: from the front, and
// from the end with so many bytes of body. What makes no sense is an object of kind 0,
// and whatever it gives has to be hashed.
func SalvageSheet(n int, ids, table []byte, body int) (sheets []*Sheet) {
	if n <= 0 || n > SheetObjects || len(ids)%idSize != 0 || len(ids) < n*idSize {
		return nil
	}
	for _, back := range []bool{false, true} {
		s := &Sheet{n: n, ids: ids, body: body}
		o := opening{sheet: s, rest: table}
		if o.tables(); o.err != nil {
			return nil
		}
		v := salvaging{opening: &o, slots: make([]slot, n)}
		s.forms = append(s.forms, form{})
		s.slots = v.slots
		if back {
			v.edge, v.own, v.sized, v.data, v.body = s.apart.n, s.own.n, o.sizes.n, len(s.data), body
			for i := n - 1; i >= 0; i-- {
				v.take(i, -1)
			}
		} else {
			for i := range n {
				v.take(i, 1)
			}
		}
		sheets = append(sheets, s)
	}
	return sheets
}

// salvaging is one reading of a sheet that may be damaged, and where it is.
type salvaging struct {
	*opening

	slots                        []slot
	edge, own, sized, data, body int
}

// take goes past object i, up or down, and notes where it is if it may be there.
func (v *salvaging) take(i, way int) {
	s := v.sheet
	none := uint16(len(s.forms) - 1)
	v.slots[i] = slot{form: none, parent: -1, link: -1}
	k := int(v.form.at(i))
	if k >= int(none) {
		return
	}
	f := &s.forms[k]
	size := 0
	at := func(place *int, by int) int {
		from := min(*place, *place+way*by)
		*place += way * by
		return from
	}
	edge := at(&v.edge, f.apart)
	own := at(&v.own, f.own)
	if f.sized {
		if k := at(&v.sized, 1); k >= 0 && k < v.sizes.n {
			size = int(v.sizes.at(k))
		}
	}
	in, all := &v.body, s.body
	if f.kind == KindCommit {
		in, all = &v.data, len(s.data)
	}
	from := at(in, size)
	switch {
	case f.reach > i, edge < 0, edge+f.apart > s.apart.n, from < 0, from+size > all:
		return
	case own < 0 || own+f.own > s.own.n:
		return
	}
	one := slot{form: uint16(k), edge: int32(edge), own: int32(own), data: int32(from), size: int32(size)}
	one.parent, one.link = f.near(i)
	v.opening.err = nil
	if v.lead(i, f, &one) {
		v.slots[i] = one
	}
}
