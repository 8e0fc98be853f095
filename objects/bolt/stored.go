package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// unstored leaves out the objects that lie in a pack already. Who puts a small object
// does not ask for that, and what was said before is said again now and then. One that
// is damaged where it lies is laid down anew, and is found there from then on. It uses the
// memory of the list.
func (l *look) unstored(list []objects.Object) ([]objects.Object, error) {
	if len(list) == 0 {
		return nil, nil
	}
	s := sortIDs(list)
	if err := l.recallPacked(s); err != nil {
		return nil, err
	}
	rest := list[:0]
	for i := range list {
		whole := false
		if s.seen[i] {
			var err error
			if whole, err = l.whole(list[i].ID); err != nil {
				return nil, err
			}
		}
		if !whole {
			rest = append(rest, list[i])
		}
	}
	return rest, nil
}

// whole tells whether an object lies in a pack, and is what it should be.
func (l *look) whole(id objects.ID) (bool, error) {
	at, ok, err := l.locate(id)
	if ok && err == nil {
		var p *pack
		if p, err = l.pack(at.pack); err == nil {
			_, err = l.packed(p, at.slot)
		}
	}
	if errors.Is(err, errPack) || ofOneObject(err) {
		return false, nil
	}
	return ok && err == nil, err
}

// sorted is the objects of a list in the order of their ids.
type sorted struct {
	list  []objects.Object
	order []spot
	again []bool // by place in the list: the same id came before
	seen  []bool // by place in the list: it may be in the store
}

// spot is one of them: the beginning of its id, and its place in the list.
type spot struct {
	begin uint64
	at    int
}

func sortIDs(list []objects.Object) *sorted {
	s := &sorted{list: list, again: make([]bool, len(list)), seen: make([]bool, len(list))}
	order := make([]spot, len(list))
	for i := range list {
		order[i] = spot{binary.BigEndian.Uint64(list[i].ID[:]), i}
	}
	s.order = sortHashes(order, func(at spot) uint64 { return at.begin }, func(a, b spot) int {
		return cmp.Or(list[a.at].ID.Compare(list[b.at].ID), a.at-b.at)
	})
	for i := 1; i < len(s.order); i++ {
		s.again[s.order[i].at] = list[s.order[i].at].ID == list[s.order[i-1].at].ID
	}
	return s
}

// recall finds out which objects may be there. Of one that is not seen it is certain.
func (l *look) recall(s *sorted) error {
	if l.mem != nil && l.mem.Len(objectsBucket, l.mark) > 0 || len(l.pending) > 0 {
		for i := range s.list {
			s.seen[i] = l.record(s.list[i].ID) != nil
		}
	}
	if err := l.recallPacked(s); err != nil {
		return err
	}
	return l.recallAlone(s)
}

// recallPacked finds out which may lie in a pack.
func (l *look) recallPacked(s *sorted) error {
	all, err := l.runs()
	if err != nil {
		return err
	}
	for _, r := range all.list {
		if r.entries/chunkEntries > 2*uint64(len(s.order)) {
			err = l.recallEach(r, s)
		} else {
			err = l.recallRun(r, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recallEach looks for few objects in a long run.
func (l *look) recallEach(r run, s *sorted) error {
	for i := range s.list {
		_, ok, err := l.locateIn(r, s.list[i].ID)
		if err != nil {
			return err
		}
		s.seen[i] = s.seen[i] || ok
	}
	return nil
}

// recallRun looks for many: both are in order.
func (l *look) recallRun(r run, s *sorted) error {
	known, next := ^uint64(0)<<(64-8*r.prefix()), 0
	for entries, err := range l.chunks(r, nil) {
		if err != nil {
			return err
		}
		for len(entries) > 0 && next < len(s.order) {
			begin, want := binary.BigEndian.Uint64(entries), s.order[next].begin&known
			if begin < want {
				entries = entries[entrySize:]
				continue
			}
			s.seen[s.order[next].at] = s.seen[s.order[next].at] || begin == want
			next++
		}
		if next == len(s.order) {
			break
		}
	}
	return nil
}

// recallAlone looks for objects that lie in no pack.
func (l *look) recallAlone(s *sorted) error {
	for _, at := range s.order {
		_, there, err := l.find(objectsBucket, s.list[at.at].ID[:])
		if err != nil {
			return err
		}
		s.seen[at.at] = s.seen[at.at] || there
	}
	return nil
}
