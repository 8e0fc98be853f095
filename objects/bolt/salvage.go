package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tract-vcs/tract/internal/compression"
	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/salvage"
)

// salvage takes what is intact of every page, also of those that the check did not reach, and
// of the whole journal: an object is what hashes to its id, a ref or a log entry what has its
// checksum. Last it puts packs together from the values that were found of them. If the audit is not
// deep, or nothing is lost, there is nothing to do.
func (a *checker) salvage() {
	h := a.snapshot
	if !a.audit.Deep || a.harmfulCount == 0 && !a.torn {
		return
	}
	err := salvage.Pages(h.ctx, h.file, h.size, h.meta.PageSize, a.salvageElement)
	if err == nil {
		err = salvage.Journal(h.journal, len(buckets), a.salvageElement)
	}
	a.stop = cmp.Or(a.stop, err)
	for n, list := range a.fragments {
		a.salvagePack(n, list)
	}
}

// maxFragments is the most values that salvage keeps for a pack. A head and a body have some old copies and
// some guesses of their ends each; a file that was made to have more must not fill the memory.
const maxFragments = 64

// salvageElement takes what it can of a key and its value.
func (a *checker) salvageElement(e salvage.Element) error {
	if len(e.Key) == 4 { // packs are read when all of their values are known
		if n := binary.BigEndian.Uint32(e.Key); !a.intact[n] && len(a.fragments[n]) < maxFragments {
			e.Key, e.Value = nil, bytes.Clone(e.Value)
			a.fragments[n] = append(a.fragments[n], e)
		}
		return nil
	}
	name := string(e.Key)
	if bytes.HasPrefix(e.Key, []byte("refs/")) {
		r, err := decodeRef(name, e.Read(a.snapshot.file))
		have, ok := a.refs.salvaged[name]
		if err == nil && (!ok || have.Updated.Before(r.Updated) || have.Updated.Equal(r.Updated) && have.Version < r.Version) {
			a.refs.salvaged[name] = r.Ref
		}
		if err == nil {
			return nil
		} // else it may be an object, if its id begins so
	}
	switch {
	case len(e.Key) == idSize:
		o, err := decodeObject(objects.ID(e.Key), e.Read(a.snapshot.file))
		if err == nil && o.Check() == nil {
			a.passObjects([]objects.Object{o})
		}
		a.passOnlyTombstone(err)
	case len(e.Key) == 8:
		list, _ := decodeEntries(e.Key, e.Read(a.snapshot.file))
		for _, one := range list {
			a.refs.entries[one.Seq] = one
		}
	}
	return a.stop
}

// salvagePack tries every value of a pack as a head with every other one as its body.
func (a *checker) salvagePack(n uint32, found []salvage.Element) {
	var list [][]byte
	for _, e := range found {
		b := e.Read(a.snapshot.file)
		if isPlausiblePackPart(b) && !hasValidSum(n, b) {
			b = checksum.Repair(packKey(n), b)
		}
		list = append(list, b)
	}
	for i, head := range list {
		a.stop = cmp.Or(a.stop, a.snapshot.ctx.Err())
		for k := 0; k < len(list) && a.stop == nil; k++ {
			body := list[k]
			if k == i {
				body = nil // the commits are in the head
			}
			salvageObjects(head, body, a.passObjects)
		}
	}
}

// isPlausiblePackPart reports whether a value may be the head or the body of a pack. Any text in a
// damaged file can look like a list of values, and looking for a flipped bit in each of those takes
// most of the time of a recovery.
func isPlausiblePackPart(b []byte) bool {
	if len(b) < bodyStart {
		return false
	}
	return codec(b[checksum.Size])&^codecPurged <= codecZstd || len(b) >= packIDs && parsePackHeader(b).end <= len(b)
}

// salvageObjects calls found with the objects that are intact in a pack of which the head, the
// body or both are damaged.
func salvageObjects(head, body []byte, found func([]objects.Object)) {
	if len(head) < packIDs || parsePackHeader(head).end > len(head) {
		return
	}
	f := parsePackHeader(head)
	table, purged, _ := f.splitTable(head)
	table, body = inflatePrefix(table), inflatePrefix(body[min(bodyStart, len(body)):])
	complete := false
	for _, trustBytes := range []bool{false, true} {
		if complete {
			break
		}
		for _, t := range packs.SalvageTable(f.count, head[packIDs:f.end], table) {
			p := &salvagedPack{pack{Table: t, purged: purged}, body, trustBytes}
			intact := p.intact()
			complete = complete || len(intact) == p.Len()-len(purged)
			found(intact)
		}
	}
}

// inflatePrefix returns what can be decompressed of a frame, and other bytes as they are. No
// codec is believed, but the beginning of a frame.
func inflatePrefix(b []byte) []byte {
	if !compression.IsFrame(b) {
		return b
	}
	data, _ := inflate(nil, b)
	return data
}

// salvagedPack is a pack that was put together from a head and a body.
type salvagedPack struct {
	pack

	body       []byte
	trustBytes bool // the bytes of an object rather than its id
}

// intact returns the objects that are known to be what was stored: they hash to an id that is
// there, or a known object refers to them by their hash. It repairs the other ids.
func (p *salvagedPack) intact() (list []objects.Object) {
	all, known, at := make([]objects.Object, p.Len()), make([]bool, p.Len()), make(map[objects.ID]int, p.Len())
	for i := range all {
		all[i], known[i] = p.repair(i)
		at[*p.ID(i)] = i
	}
	for i := len(all) - 1; i >= 0; i-- {
		if !known[i] {
			continue
		}
		for _, id := range slices.Concat(all[i].Parents, all[i].Links) {
			if k, ok := at[id]; ok {
				known[k] = all[k].Kind.Valid()
			}
		}
	}
	for i := range all {
		if known[i] {
			list = append(list, all[i])
		}
	}
	return list
}

// maxFlips is how many bits of an id may be wrong so that it is still that id: no other object
// hashes so near.
const maxFlips = 64

// repair returns an object whose bytes hash to its id, or nearly: then the id is damaged, and is
// repaired for those that refer to it. If bytes are believed, any object is returned, and is known
// when a known object refers to it. Otherwise the object has no kind.
func (p *salvagedPack) repair(i int) (o objects.Object, known bool) {
	if !p.Kind(i).Valid() || p.isPurged(i) {
		return objects.Object{}, false
	}
	var edgeBuf []objects.ID
	o = p.Object(i, &edgeBuf)
	if o.Kind != objects.KindCommit {
		from, size := p.Data(i)
		if from+size > len(p.body) {
			return objects.Object{}, false
		}
		o.Data = p.body[from : from+size]
	}
	real := objects.New(o.Kind, slices.Clone(o.Parents), slices.Clone(o.Links), bytes.Clone(o.Data))
	known = differingBits(real.ID, o.ID) <= maxFlips
	if !known && !p.trustBytes {
		return objects.Object{}, false
	}
	*p.ID(i) = real.ID
	return real, known
}

func differingBits(a, b objects.ID) (n int) {
	for k := range a {
		n += bits.OnesCount8(a[k] ^ b[k])
	}
	return n
}
