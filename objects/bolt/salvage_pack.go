package bolt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tract-vcs/tract/internal/compression"
	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// salvagePack tries every head that was found with every body.
func (a *checker) salvagePack(n uint32, s *fragments) error {
	bodies := make([]salvagedBody, 0, max(len(s.bodies), 1))
	for _, x := range s.bodies {
		b, err := a.extent(x)
		if isStop(err) {
			return err
		}
		if len(b) < bodyStart {
			continue
		}
		if codec(b[8])&^codecPurged <= codecZstd { // else it is mostly a head
			b = checksum.Repair(packKey(n), b)
		}
		sound := binary.BigEndian.Uint64(b) == checksum.Sum(packKey(n), b[8:])
		bodies = append(bodies, salvagedBody{inflatePrefix(b[bodyStart:]), sound})
	}
	if len(bodies) == 0 {
		bodies = append(bodies, salvagedBody{})
	}
	for _, x := range s.heads {
		b, err := a.extent(x)
		if isStop(err) {
			return err
		}
		head, ok := newSalvagedHead(n, b)
		if !ok {
			continue // mostly a body, since any piece may be either
		}
		if err := a.salvageHead(head, bodies, s); err != nil {
			return err
		}
	}
	return nil
}

// salvagedBody is what can be had of a body, and whether its checksum is right.
type salvagedBody struct {
	data  []byte
	sound bool
}

// salvagedHead is a head that was found.
type salvagedHead struct {
	n     uint32
	bytes []byte
	packHeader
}

func newSalvagedHead(n uint32, b []byte) (h *salvagedHead, ok bool) {
	if len(b) < packIDs || parsePackHeader(b).end > len(b) {
		return nil, false
	}
	b = checksum.Repair(packKey(n), b)
	h = &salvagedHead{n, b, parsePackHeader(b)}
	return h, h.packHeader.end <= len(b)
}

// salvageHead tries a head with every body, and keeps the ids that come of it.
func (a *checker) salvageHead(h *salvagedHead, bodies []salvagedBody, s *fragments) error {
	s.ids = append(s.ids, bytes.Clone(h.bytes[packIDs:h.packHeader.end])) // whatever is behind them
	for _, body := range bodies {
		for _, p := range h.combine(body) {
			for i := range p.whole {
				if err := a.pass(a.look(p.whole[i:i+1:i+1]), nil); err != nil {
					return err
				}
			}
			s.ids = append(s.ids, p.ids)
		}
	}
	return nil
}

// salvagedPack is a pack that was made of pieces. Its ids are put right where they are found
// to be wrong.
type salvagedPack struct {
	pack

	believe bool // what objects say, rather than ids that are there
	whole   []objects.Object
}

// combine is what can be made of a head with a body. Where that is sound and not all is
// found, it may be that ids are wrong by more than is nearly: then each is made of what
// the object says.
func (h *salvagedHead) combine(body salvagedBody) (list []*salvagedPack) {
	table, purged, _ := h.packHeader.splitTable(h.bytes)
	ids, table := h.bytes[packIDs:h.packHeader.end], inflatePrefix(table)
	open := func(room []byte) []*packs.Table {
		if s, err := packs.ParseTable(h.packHeader.count, room, table, nil); err == nil {
			return []*packs.Table{s}
		}
		return packs.SalvageTable(h.packHeader.count, room, table)
	}
	for k, more := 0, 1; k < more; k++ {
		for _, believe := range []bool{false, true} {
			room := bytes.Clone(ids) // each has its own
			tables := open(room)
			if more = len(tables); k >= more {
				break
			}
			p := &salvagedPack{pack: pack{Table: tables[k], n: h.n, ids: room, purged: purged}, believe: believe}
			p.whole = p.known(body)
			if list = append(list, p); !body.sound || len(body.data) != p.BodySize() || len(p.whole) == p.Len()-len(purged) {
				break
			}
		}
	}
	return list
}

// inflatePrefix gives what can be had of what is in zstd, and what is not as it is. No
// codec is believed, but the beginning of a frame.
func inflatePrefix(b []byte) []byte {
	if !compression.IsFrame(b) {
		return b
	}
	data, _ := inflate(nil, nil, b)
	return data
}

// known gives the objects that are whole, and are known to be what was kept: they hash
// to an id that is there, or something leads to them that does.
func (p *salvagedPack) known(body salvagedBody) (whole []objects.Object) {
	list, known, at := make([]objects.Object, p.Len()), make([]bool, p.Len()), make(map[objects.ID]int, p.Len())
	for i := range list {
		list[i], known[i] = p.repair(i, body)
		at[p.id(i)] = i
	}
	for i := len(list) - 1; i >= 0; i-- {
		if !known[i] {
			continue
		}
		for _, ids := range [2][]objects.ID{list[i].Parents, list[i].Links} {
			for _, id := range ids {
				if k, ok := at[id]; ok {
					known[k] = list[k].Kind.Valid()
				}
			}
		}
	}
	for i := range list {
		if known[i] {
			whole = append(whole, list[i])
		}
	}
	return whole
}

// mostFlips is how many bits of an id may be wrong and it is still that id: no other
// object hashes so near.
const mostFlips = 64

// repair returns an object if its bytes have the hash of its id, or nearly: then it is the
// id that is damaged, and is put right for those that lead to it. Where its bytes
// are believed, it is given too, and is not known until something that is known leads to it. Else it is of no kind. The data of a body that is
// cut off, or of which too little is known, is looked for before its end too.
func (p *salvagedPack) repair(i int, body salvagedBody) (o objects.Object, known bool) {
	if !p.Kind(i).Valid() || p.isPurged(i) {
		return objects.Object{}, false
	}
	var room []objects.ID
	o = p.Object(i, &room)
	if o.Kind == objects.KindCommit {
		return p.repairAs(i, o, p.believe)
	}
	from, size := p.Data(i)
	for k, at := range [2]int{from, from + len(body.data) - p.BodySize()} {
		if at < 0 || at+size > len(body.data) || k > 0 && at == from {
			continue
		}
		o.Data = body.data[at : at+size]
		if real, ok := p.repairAs(i, o, p.believe); real.Kind.Valid() {
			return real, ok
		}
	}
	return objects.Object{}, false
}

// repairAs holds an object to its id. One that is believed is given whatever that is.
func (p *salvagedPack) repairAs(i int, o objects.Object, believe bool) (real objects.Object, known bool) {
	real = objects.New(o.Kind, slices.Clone(o.Parents), slices.Clone(o.Links), bytes.Clone(o.Data))
	known = isNearly(real.ID, o.ID)
	if !known && !believe {
		return objects.Object{}, false
	}
	copy(p.ids[i*idSize:], real.ID[:])
	return real, known
}

func isNearly(a, b objects.ID) bool {
	far := 0
	for k := range a {
		far += bits.OnesCount8(a[k] ^ b[k])
	}
	return far <= mostFlips
}
