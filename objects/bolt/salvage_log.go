package bolt

import (
	"bytes"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// The log refers to packs. Where one of them is damaged, entries are found again by
// trying the heads that were found, of which there may be several of one number: an old
// page may still have what another pack was. Their hash says which is right.

// idAt gives the id of an object of a pack that the file leads to.
func (a *auditor) idAt(at place) (objects.ID, error) {
	if a.meta.pageSize == 0 {
		return objects.ID{}, fmt.Errorf("nothing leads to pack %d", at.pack)
	}
	if a.heads == nil || len(a.heads.packs) >= keepPacks { // the pages of a look lie in its room too
		room := &arena{}
		if a.heads != nil {
			room = a.heads.arena
			room.reset()
		}
		a.heads = newLook(a.files, a.meta)
		a.heads.arena = room
	}
	return a.heads.idAt(at)
}

// scrapEntries keeps the entries of the log under a key, if there are any. Those that
// cannot be read yet are put aside.
func (a *auditor) scrapEntries(key, value []byte) {
	list, err := decodeEntries(key, value, a.idAt)
	for _, e := range list {
		a.names.keep(e)
	}
	if _, sealed := unseal(key, value); err != nil && sealed == nil {
		a.names.unread = append(a.names.unread, change{logBucket, bytes.Clone(key), bytes.Clone(value)})
	}
}

// scrapLog reads again what could not be read of the log before packs were mended.
func (a *auditor) scrapLog() {
	for _, c := range a.names.unread {
		for try, more := 0, true; more; try++ {
			more = false
			at := func(at place) (id objects.ID, err error) {
				s := a.broken[at.pack]
				if s == nil || len(s.ids) == 0 {
					return a.idAt(at)
				}
				more = more || try+1 < len(s.ids)
				ids := s.ids[min(try, len(s.ids)-1)]
				if from := at.slot * idSize; from+idSize <= len(ids) {
					copy(id[:], ids[from:])
				}
				return id, nil
			}
			list, err := decodeEntries(c.key, c.value, at)
			for _, e := range list {
				a.names.keep(e)
			}
			if err == nil {
				break
			}
		}
	}
}
