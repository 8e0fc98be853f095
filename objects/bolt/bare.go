package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// A small store that is packed closely has no index: its first packs are bare. Who looks
// for an object there looks through the ids in their heads, which takes no longer than
// to read a piece of the index, and the index would be a twentieth of the file.
const (
	barePacks   = 4 // most that are bare
	bareObjects = 4096
)

// maybeBare tells whether a file of so much need not have an index.
func maybeBare(packs uint32, entries int) bool { return packs <= barePacks && entries <= bareObjects }

// bareIDs is the first 8 bytes of each id of a bare pack. It is known by its number and
// by the checksum that its head begins with.
type bareIDs struct {
	pack   uint32
	sum    uint64
	begins []uint64
}

// locateBare finds an object in the bare packs.
func (l *look) locateBare(all runs, id objects.ID) (place, bool, error) {
	begin := binary.BigEndian.Uint64(id[:])
	for n := uint32(1); n <= all.bare; n++ {
		begins, err := l.beginsOf(n)
		if err != nil {
			return place{}, false, damaged(id, err)
		}
		for slot, one := range begins {
			if one != begin {
				continue
			}
			if ok, err := l.confirm(place{n, slot}, id); ok || err != nil {
				return place{n, slot}, ok, err
			}
		}
	}
	return place{}, false, nil
}

// beginsOf gives how the ids of a pack begin. They are shared, and never changed. What
// is behind the ids is not looked at: damage to it keeps nobody from what lies elsewhere,
// nor from writing. Of a head that is damaged, and cannot be mended, everything may be an
// id.
func (l *look) beginsOf(n uint32) ([]uint64, error) {
	e, err := l.ofPack(headsBucket, n)
	if err != nil {
		return nil, err
	}
	b, err := e.part(0, min(packIDs, e.valueSize))
	if err != nil || len(b) < packIDs {
		return nil, fmt.Errorf("pack %d: %w: a head of %d bytes", n, errPack, e.valueSize)
	}
	key := binary.BigEndian.Uint64(b)
	if begins := l.bodies.bareOf(n, key); begins != nil {
		return begins, nil
	}
	head, err := e.value()
	if err != nil {
		return nil, err
	}
	count := min((len(head)-packIDs)/idSize, packObjects)
	sound := key == sum(packKey(n), head[8:])
	if !sound {
		head = mended(packKey(n), head)
		sound = key == sum(packKey(n), head[8:])
	}
	if sound {
		count = min(count, int(binary.BigEndian.Uint16(head[8:])&^packZstd))
	}
	begins := make([]uint64, count)
	for i := range begins {
		begins[i] = binary.BigEndian.Uint64(head[packIDs+i*idSize:])
	}
	if sound {
		l.bodies.keepBare(bareIDs{n, key, begins})
	}
	return begins, nil
}

func (o *opened) bareOf(n uint32, sum uint64) []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > barePacks || o.bare[n-1].sum != sum {
		return nil
	}
	return o.bare[n-1].begins
}

func (o *opened) keepBare(ids bareIDs) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bare[ids.pack-1] = ids
}

// inBare searches the bare packs for ids that begin so. There are few of them, and they
// come in no order.
func (q *search) inBare(l *look, all runs, from []byte) error {
	from = from[:min(len(q.prefix)/2, indexPrefix)]
	for n := uint32(1); n <= all.bare; n++ {
		begins, err := l.beginsOf(n)
		if err != nil {
			return err
		}
		for slot, one := range begins {
			if begin := binary.BigEndian.AppendUint64(nil, one); !bytes.HasPrefix(begin, from) {
				continue
			}
			p, err := l.pack(n)
			if err != nil {
				return err
			}
			if slot < p.Len() && q.match(p, slot) {
				q.ids = append(q.ids, p.id(slot))
			}
		}
	}
	return nil
}
