package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A pack is some hundred objects that lie together: a run of commits with what
// they link to. It has two values, so that a history can be walked without what
// was said:
//
//	head   sum u64, count u16, the ids; then for each object: kind (one byte),
//	       varint n, n parents, varint m, m links, varint size of the data, and
//	       of a commit the data
//	body   sum u64, codec (one byte), the data of the others
//
// A parent or link is varint 0 and an id, or varint d: the object d places before
// this one. With 0x8000 added to the count, what follows the ids is in zstd. The
// sums are over the key and what follows them, as it is kept; they are made when
// every object has been hashed and compared with its id, so that who reads a
// whole pack need not hash.
const (
	packObjects = 4096    // most that one pack holds
	looseSize   = 4 << 10 // records from this size on are kept for themselves

	packIDs   = 8 + 2
	packZstd  = 0x8000 // added to the count
	bodyStart = 8 + 1
	idSize    = len(objects.ID{})
)

// limits say when a pack is full: after so many commits or so much data, and in any
// case with so many objects.
type limits struct{ commits, bytes, objects int }

var (
	young = limits{256, 256 << 10, 1024}
	dense = limits{2048, 512 << 10, packObjects} // when the store is packed closely
)

func packKey(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// encodePack makes the two values of a pack, in a codec if that makes them shorter.
func encodePack(n uint32, list []objects.Object, c codec) (head, body []byte) {
	key := packKey(n)
	head = make([]byte, 8, packIDs+len(list)*2*idSize)
	head = binary.BigEndian.AppendUint16(head, uint16(len(list)))
	slots := make(map[objects.ID]int, len(list))
	for i := range list {
		head = append(head, list[i].ID[:]...)
	}
	body = append(make([]byte, 8), byte(codecRaw))
	size := 0
	for _, o := range list {
		size += len(o.Data)
	}
	body = slices.Grow(body, size)
	for i, o := range list {
		head = append(head, byte(o.Kind))
		for _, ids := range [][]objects.ID{o.Parents, o.Links} {
			head = binary.AppendUvarint(head, uint64(len(ids)))
			for _, id := range ids {
				if slot, ok := slots[id]; ok {
					head = binary.AppendUvarint(head, uint64(i-slot))
					continue
				}
				head = append(append(head, 0), id[:]...)
			}
		}
		head = binary.AppendUvarint(head, uint64(len(o.Data)))
		if o.Kind == objects.KindCommit {
			head = append(head, o.Data...)
		} else {
			body = append(body, o.Data...)
		}
		slots[o.ID] = i
	}
	if c == codecZstd {
		head, body = closeHead(head), closeBody(body)
	}
	binary.BigEndian.PutUint64(head, sum(key, head[8:]))
	binary.BigEndian.PutUint64(body, sum(key, body[8:]))
	return head, body
}

// pack is the head of one.
type pack struct {
	n      uint32
	head   []byte // as it is without a codec
	slots  []slot
	bodies int  // bytes of all data in the body
	sound  bool // its checksum is right: its objects need no hashing
}

// slot is where an object begins in the head, and its data in the head or the body.
type slot struct {
	at, data, size int32
}

var errPack = errors.New("a pack makes no sense")

// parsePack reads the head of a pack as far as it must be known to find any object
// of it. Of one whose checksum is wrong every object has to be hashed. It keeps b.
func parsePack(n uint32, b []byte) (*pack, error) { return parsePackIn(nil, n, b) }

func parsePackIn(a *arena, n uint32, b []byte) (*pack, error) {
	if len(b) < packIDs {
		return nil, fmt.Errorf("pack %d: %w: a head of %d bytes", n, errPack, len(b))
	}
	sound := binary.BigEndian.Uint64(b) == sum(packKey(n), b[8:])
	b, err := openHead(a, b)
	if err != nil {
		return nil, fmt.Errorf("pack %d: %w: %w", n, errPack, err)
	}
	count := int(binary.BigEndian.Uint16(b[8:]))
	at := packIDs + count*idSize
	if count == 0 || count > packObjects || at > len(b) {
		return nil, fmt.Errorf("pack %d: %w: %d objects in %d bytes", n, errPack, count, len(b))
	}
	p := &pack{n: n, head: b, slots: a.takeSlots(count), sound: sound}
	for i := range p.slots {
		s := &p.slots[i]
		s.at = int32(at)
		commit := at < len(b) && objects.Kind(b[at]) == objects.KindCommit
		next, ok := edgesEnd(b, at+1, i)
		if !ok {
			return nil, fmt.Errorf("pack %d: %w: object %d", n, errPack, i)
		}
		size, next, ok := varint(b, next)
		if !ok || size > objects.MaxSize {
			return nil, fmt.Errorf("pack %d: %w: the size of object %d", n, errPack, i)
		}
		at = next
		s.size = int32(size)
		if commit {
			s.data = int32(at)
			at += size
		} else {
			s.data = int32(p.bodies)
			p.bodies += size
		}
		if at > len(b) {
			return nil, fmt.Errorf("pack %d: %w: object %d is cut off", n, errPack, i)
		}
	}
	if at != len(b) {
		return nil, fmt.Errorf("pack %d: %w: %d bytes are left", n, errPack, len(b)-at)
	}
	return p, nil
}

// edgesEnd finds where the edges of object i end.
func edgesEnd(b []byte, at, i int) (end int, ok bool) {
	for range 2 {
		if at+1 < len(b) && b[at] == 1 && b[at+1] > 0 && b[at+1] < 0x80 && int(b[at+1]) <= i {
			at += 2 // one edge and it is near, as most have
			continue
		}
		k, next, ok := varint(b, at)
		for at = next; ok && k > 0; k-- {
			var back int
			if back, at, ok = varint(b, at); back == 0 {
				at += idSize
			} else if back > i {
				ok = false
			}
		}
		if !ok {
			return 0, false
		}
	}
	return at, true
}

// varint reads a number in the fewest bytes it can have, below 2^28.
func varint(b []byte, at int) (v, next int, ok bool) {
	if at < len(b) && b[at] < 0x80 {
		return int(b[at]), at + 1, true
	}
	if at+1 < len(b) && b[at+1] > 0 && b[at+1] < 0x80 {
		return int(b[at]&0x7f) | int(b[at+1])<<7, at + 2, true
	}
	if at >= len(b) {
		return 0, at, false
	}
	n, size := binary.Uvarint(b[at:min(at+4, len(b))])
	if size <= 0 || b[at+size-1] == 0 {
		return 0, at, false
	}
	return int(n), at + size, true
}

func (p *pack) id(i int) objects.ID {
	return objects.ID(p.head[packIDs+i*idSize : packIDs+(i+1)*idSize])
}

func (p *pack) has(i int, id objects.ID) bool {
	return string(p.head[packIDs+i*idSize:packIDs+(i+1)*idSize]) == string(id[:])
}

func (p *pack) kind(i int) objects.Kind { return objects.Kind(p.head[p.slots[i].at]) }

// edges adds the parents and links of an object to a slice that they may share.
func (p *pack) edges(i int, room *[]objects.ID) (parents, links []objects.ID) {
	at := int(p.slots[i].at) + 1
	for _, ids := range []*[]objects.ID{&parents, &links} {
		n, next, _ := varint(p.head, at)
		if at = next; n == 0 {
			continue
		}
		if cap(*room)-len(*room) < n {
			*room = make([]objects.ID, 0, max(n, young.commits))
		}
		from := len(*room)
		for range n {
			back, next, _ := varint(p.head, at)
			if at = next; back > 0 {
				*room = append(*room, p.id(i-back))
				continue
			}
			*room = append(*room, objects.ID(p.head[at:]))
			at += idSize
		}
		*ids = (*room)[from:len(*room):len(*room)]
	}
	return parents, links
}

// parent is the slot of the first parent in the same pack; -1: it is not there.
func (p *pack) parent(i int) int {
	n, at, _ := varint(p.head, int(p.slots[i].at)+1)
	return p.back(i, n, at)
}

// link is the slot of what the first link names, as parent is.
func (p *pack) link(i int) int {
	n, at, _ := varint(p.head, int(p.slots[i].at)+1)
	for range n {
		var back int
		if back, at, _ = varint(p.head, at); back == 0 {
			at += idSize
		}
	}
	n, at, _ = varint(p.head, at)
	return p.back(i, n, at)
}

// back reads the first of n edges.
func (p *pack) back(i, n, at int) int {
	if n > 0 {
		if back, _, _ := varint(p.head, at); back > 0 {
			return i - back
		}
	}
	return -1
}

// object gives an object but its data, unless it is a commit. The data is a piece
// of the head.
func (p *pack) object(i int, room *[]objects.ID) objects.Object {
	o := objects.Object{ID: p.id(i), Kind: p.kind(i)}
	o.Parents, o.Links = p.edges(i, room)
	if s := p.slots[i]; o.Kind == objects.KindCommit {
		o.Data = p.head[s.data : s.data+s.size : s.data+s.size]
	}
	return o
}
