package bolt

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// scrapPack tries every head that was found with every body.
func (a *auditor) scrapPack(n uint32, s *scraps) error {
	bodies := make([][]byte, 0, max(len(s.bodies), 1))
	for _, x := range s.bodies {
		b, err := a.extent(x)
		if foreign(err) {
			return err
		}
		if len(b) < bodyStart {
			continue
		}
		if codec(b[8]) <= codecZstd { // else it is mostly a head
			b = mended(packKey(n), b)
		}
		bodies = append(bodies, laxInflate(b[bodyStart:]))
	}
	if len(bodies) == 0 {
		bodies = append(bodies, nil)
	}
	for _, x := range s.heads {
		head, err := a.extent(x)
		if foreign(err) {
			return err
		}
		if len(head) < packIDs {
			continue
		}
		if end, _ := idsEnd(head); end > len(head) {
			continue // mostly a body, since any piece may be either
		}
		head = bytes.Clone(mended(packKey(n), head)) // ids in it are mended
		s.mended = append(s.mended, head)
		for _, data := range bodies {
			for _, p := range laxPacks(n, head) {
				if err := a.scrapObjects(p, data); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// laxPacks is what can be made of a head.
func laxPacks(n uint32, b []byte) (list []*pack) {
	from, count := idsEnd(b)
	if from > len(b) {
		return nil
	}
	ids, table := b[packIDs:from:from], laxInflate(b[from:])
	sheets := objects.SalvageSheet(count, ids, table)
	if s, err := objects.OpenSheet(count, ids, table, nil); err == nil {
		sheets = []*objects.Sheet{s}
	}
	for _, s := range sheets {
		list = append(list, &pack{Sheet: s, n: n, ids: ids})
	}
	return list
}

// laxInflate gives what can be had of what is in zstd, and what is not as it is. No
// codec is believed, but the beginning of a frame.
func laxInflate(b []byte) []byte {
	if !bytes.HasPrefix(b, zstdMagic) {
		return b
	}
	data, _ := inflate(nil, nil, b)
	return data
}

func (a *auditor) scrapObjects(p *pack, data []byte) error {
	for i := range p.Len() {
		o, ok := p.mend(i, data)
		if !ok {
			continue
		}
		if err := a.pass(a.look([]objects.Object{o}), nil); err != nil {
			return err
		}
	}
	return nil
}

// mostFlips is how many bits of an id may be wrong and it is still that id: no other
// object hashes so near.
const mostFlips = 64

// mend gives an object if its bytes have the hash of its id, or nearly: then it is the
// id that is damaged, and is put right for those that lead to it. The data of a body
// that is cut off, or of which too little is known, is looked for before its end too.
func (p *pack) mend(i int, data []byte) (objects.Object, bool) {
	if !p.Kind(i).Valid() {
		return objects.Object{}, false
	}
	var room []objects.ID
	o, err := p.Object(i, &room)
	if err != nil {
		return o, false
	}
	if o.Kind == objects.KindCommit {
		return p.mendAs(i, o)
	}
	from, size := p.Data(i)
	for k, at := range [2]int{from, from + len(data) - p.Body()} {
		if at < 0 || at+size > len(data) || k > 0 && at == from {
			continue
		}
		o.Data = data[at : at+size]
		if real, ok := p.mendAs(i, o); ok {
			return real, true
		}
	}
	return o, false
}

func (p *pack) mendAs(i int, o objects.Object) (objects.Object, bool) {
	real := objects.New(o.Kind, slices.Clone(o.Parents), slices.Clone(o.Links), bytes.Clone(o.Data))
	if !nearly(real.ID, o.ID) {
		return o, false
	}
	copy(p.ids[i*idSize:], real.ID[:])
	return real, true
}

func nearly(a, b objects.ID) bool {
	far := 0
	for k := range a {
		far += bits.OnesCount8(a[k] ^ b[k])
	}
	return far <= mostFlips
}
