package bolt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// scrapPack tries every head that was found with every body.
func (a *auditor) scrapPack(n uint32, s *scraps) error {
	for _, h := range s.heads {
		head, err := a.extent(h)
		if foreign(err) {
			return err
		}
		head = laxHead(head) // ids in it are mended
		slots := laxSlots(n, head)
		if len(slots) == 0 {
			continue
		}
		s.mended = append(s.mended, head)
		bodies := s.bodies
		if len(bodies) == 0 {
			bodies = []extent{{value: []byte{}}}
		}
		for _, x := range bodies {
			body, err := a.extent(x)
			if foreign(err) {
				return err
			}
			if err := a.scrapObjects(laxPack(n, head, slots), slots, laxInflate(body[min(bodyStart, len(body)):])); err != nil {
				return err
			}
		}
	}
	return nil
}

// laxHead is a copy of a head without a codec, as far as that can be had.
func laxHead(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < packIDs {
		return b
	}
	count := binary.BigEndian.Uint16(b[8:]) &^ packZstd
	from := packIDs + int(count)*idSize
	if from > len(b) || !bytes.HasPrefix(b[from:], zstdMagic) {
		return b
	}
	binary.BigEndian.PutUint16(b[8:], count)
	return append(b[:from:from], laxInflate(b[from:])...)
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

// laxSlot is an object of a pack as it may be: its data is so many bytes behind the
// beginning of the body, or before its end, or neither is known (-1).
type laxSlot struct {
	slot
	known       bool
	front, back int
}

func laxPack(n uint32, head []byte, slots []laxSlot) *pack {
	p := &pack{n: n, head: head}
	for i := range slots {
		p.slots = append(p.slots, slots[i].slot)
	}
	return p
}

func (a *auditor) scrapObjects(p *pack, slots []laxSlot, data []byte) error {
	for i, s := range slots {
		if !s.known {
			continue
		}
		var tries [][]byte
		if p.kind(i) == objects.KindCommit {
			tries = append(tries, p.head[s.data:s.data+s.size])
		} else {
			for _, from := range []int{s.front, len(data) - s.back} {
				if s.back < 0 && from > len(data) || from < 0 || from+int(s.size) > len(data) {
					continue
				}
				tries = append(tries, data[from:from+int(s.size)])
			}
		}
		for _, b := range tries {
			if o, ok := p.mend(i, b); ok {
				if err := a.object("", o, nil); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// mostFlips is how many bits of an id may be wrong and it is still that id: no other
// object hashes so near.
const mostFlips = 64

// mend gives an object if its bytes have the hash of its id, or nearly: then it is the
// id that is damaged, and is put right for those that lead to it.
func (p *pack) mend(i int, data []byte) (objects.Object, bool) {
	var room []objects.ID
	o := p.object(i, &room)
	real := objects.New(o.Kind, slices.Clone(o.Parents), slices.Clone(o.Links), bytes.Clone(data))
	if !nearly(real.ID, o.ID) {
		return o, false
	}
	copy(p.head[packIDs+i*idSize:], real.ID[:])
	return real, true
}

func nearly(a, b objects.ID) bool {
	far := 0
	for k := range a {
		far += bits.OnesCount8(a[k] ^ b[k])
	}
	return far <= mostFlips
}

// How far behind damage the next sound object is looked for.
const (
	lookBytes   = 8 << 10
	lookObjects = 64
	lookRun     = 8 // of which one has to be a commit
)

// laxSlots finds the objects of a head. Where one makes no sense, those before it are
// counted from the front of the body, and those after it from its end.
func laxSlots(n uint32, head []byte) []laxSlot {
	if len(head) < packIDs {
		return nil
	}
	count := int(binary.BigEndian.Uint16(head[8:]))
	at := packIDs + count*idSize
	if count == 0 || count > packObjects || at > len(head) {
		return nil
	}
	slots := make([]laxSlot, count)
	next := laxRun(head, slots, 0, at, count)
	if next == count {
		countBack(head, slots, 0)
	}
	good, from := lastGood(n, head, slots[:next], at)
	if good == count {
		return slots
	}
	rest := make([]laxSlot, count)
	for j := good; j < min(good+lookObjects, count); j++ {
		for off := from; off < min(from+lookBytes, len(head)); off++ {
			if next == count && slots[j].known && int(slots[j].at) == off || !soundStart(n, head, rest, j, off) || laxRun(head, rest, j, off, count) != count {
				continue
			}
			countBack(head, rest, j)
			copy(slots[j:], rest[j:])
			return slots
		}
	}
	return slots
}

// soundStart tells whether an object may begin there: then one of the next few is a
// commit that is what its id says.
func soundStart(n uint32, head []byte, slots []laxSlot, j, at int) bool {
	if !objects.Kind(head[at]).Valid() {
		return false
	}
	clear(slots[j:min(j+lookRun, len(slots))])
	end := laxRun(head, slots, j, at, min(j+lookRun, len(slots)))
	for i := j; i < end; i++ {
		if objects.Kind(head[slots[i].at]) == objects.KindCommit {
			return soundCommit(n, head, slots, i)
		}
	}
	return false
}

// lastGood gives how many slots come before the first that can be wrong, and where
// that begins: what lies before the last commit that is what its id says is right.
func lastGood(n uint32, head []byte, slots []laxSlot, start int) (good, from int) {
	from = start
	for i, s := range slots {
		if objects.Kind(head[s.at]) != objects.KindCommit {
			continue
		}
		if !soundCommit(n, head, slots, i) {
			return good, from
		}
		good, from = i+1, int(s.data+s.size)
	}
	return len(slots), from
}

func soundCommit(n uint32, head []byte, slots []laxSlot, i int) bool {
	p := &pack{n: n, head: head, slots: make([]slot, i+1)}
	p.slots[i] = slots[i].slot
	var room []objects.ID
	o := p.object(i, &room)
	return nearly(objects.New(o.Kind, o.Parents, o.Links, o.Data).ID, o.ID)
}

// countBack notes how far before the end of the body the data from a slot on begins.
func countBack(head []byte, slots []laxSlot, j int) {
	back := 0
	for i := len(slots) - 1; i >= j; i-- {
		if objects.Kind(head[slots[i].at]) != objects.KindCommit {
			back += int(slots[i].size)
			slots[i].back = back
		}
	}
}

// laxObject reads an object up to its data.
func laxObject(b []byte, i, at int) (size, data, end int, ok bool) {
	p := at + 1
	for range 2 {
		var k int
		for k, p, ok = varint(b, p); ok && k > 0; k-- {
			var back int
			if back, p, ok = varint(b, p); back == 0 {
				p += idSize
			}
			ok = ok && back <= i && p <= len(b)
		}
		if !ok {
			return 0, 0, 0, false
		}
	}
	size, data, ok = varint(b, p)
	if end = data; objects.Kind(b[at]) == objects.KindCommit {
		end += size
	}
	return size, data, end, ok && size <= objects.MaxSize && end <= len(b)
}

// laxRun reads the objects i to end, one after the other from a place on, and says
// which it could not read.
func laxRun(b []byte, slots []laxSlot, i, at, end int) (next int) {
	front := 0
	if i > 0 {
		front = -1
	}
	for ; i < end; i++ {
		if at >= len(b) || !objects.Kind(b[at]).Valid() {
			return i
		}
		size, data, after, ok := laxObject(b, i, at)
		if !ok {
			return i
		}
		s := laxSlot{slot: slot{at: int32(at), size: int32(size), data: int32(data)}, known: true, front: front, back: -1}
		if objects.Kind(b[at]) != objects.KindCommit && front >= 0 {
			front += size
		}
		slots[i], at = s, after
	}
	return i
}
