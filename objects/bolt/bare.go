package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// bareIDs is the first 8 bytes of each id of a bare pack, and its head, if that is short.
// It is known by its number and by the checksum that its head begins with.
type bareIDs struct {
	pack   uint32
	sum    uint64
	begins []uint64
	head   *pack
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
// id. A short one has to be read; if it cannot, nothing of it is found.
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
	if begins := l.bodies.bareOf(n, key).begins; begins != nil {
		return begins, nil
	}
	if frontOf(b).out > 0 {
		p, err := l.pack(n)
		switch {
		case err == nil:
			return p.begins(), nil
		case errors.Is(err, errPack):
			return []uint64{}, nil
		}
		return nil, err
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
		count = min(count, frontOf(head).count)
	}
	begins := make([]uint64, count)
	for i := range begins {
		begins[i] = binary.BigEndian.Uint64(head[packIDs+i*idSize:])
	}
	if sound {
		l.bodies.keepBare(bareIDs{n, key, begins, nil})
	}
	return begins, nil
}

// begins is how the ids of a pack begin.
func (p *pack) begins() []uint64 {
	begins := make([]uint64, p.Len())
	for i := range begins {
		begins[i] = binary.BigEndian.Uint64(p.ID(i)[:])
	}
	return begins
}

// notFound says that an object is not there; or that nobody knows, since some ids of a
// bare pack are not known.
func (l *look) notFound(id objects.ID) error {
	all, err := l.runs()
	if err != nil {
		return err
	}
	for n := uint32(1); n <= all.bare; n++ {
		if p, err := l.pack(n); err != nil {
			return damaged(id, err)
		} else if p.lost > 0 {
			return damaged(id, fmt.Errorf("pack %d: %w: %d of its ids are not known", n, errPack, p.lost))
		}
	}
	return &objects.NotFoundError{ID: id}
}

func (o *opened) bareOf(n uint32, sum uint64) bareIDs {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > barePacks || o.bare[n-1].sum != sum {
		return bareIDs{}
	}
	return o.bare[n-1]
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
