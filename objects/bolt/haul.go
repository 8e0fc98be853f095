package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A batch that is too large for the journal goes into packs as it came: nobody has to
// read it before it is there, so none of its objects is staged, and they are looked up
// all at once.

// bulky tells whether a batch is to be hauled.
func bulky(b objects.Batch) bool { return weight(b.Put) > frameMost }

func weight(list []objects.Object) (size int) {
	for i := range list {
		size += len(list[i].Data)
	}
	return size
}

// haul plans a large batch, before any other of its group, or nothing of it when it
// gives an error.
func (p *plan) haul(b objects.Batch) (err error) {
	if b.Put, err = p.unknown(b); err != nil {
		return err
	}
	if !bulky(b) {
		return p.add(b)
	}
	if err := p.add(objects.Batch{Refs: b.Refs, Note: b.Note}); err != nil {
		return err
	}
	p.hauled = b.Put
	p.size += weight(b.Put)
	return nil
}

// unknown is the objects of a batch that are not there yet, each once, in their order.
func (p *plan) unknown(b objects.Batch) ([]objects.Object, error) {
	s := sortIDs(b.Put)
	if err := p.look.recall(s); err != nil {
		return nil, err
	}
	if !slices.Contains(s.again, true) && !slices.Contains(s.seen, true) {
		return b.Put, nil
	}
	fresh := make([]objects.Object, 0, len(b.Put))
	for i, o := range b.Put {
		if s.again[i] {
			continue
		}
		if s.seen[i] {
			value, err := p.fresh(o, b.Copies)
			if err != nil {
				return nil, err
			}
			if value == nil {
				continue
			}
		}
		fresh = append(fresh, o)
	}
	return fresh, nil
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
	s.order = sortHashes(order, func(at *spot) uint64 { return at.begin }, func(a, b spot) int {
		return cmp.Or(list[a.at].ID.Compare(list[b.at].ID), a.at-b.at)
	})
	for i := 1; i < len(s.order); i++ {
		s.again[s.order[i].at] = list[s.order[i].at].ID == list[s.order[i-1].at].ID
	}
	return s
}

// recall finds out which objects may be there. Of one that is not seen it is certain.
func (l *look) recall(s *sorted) error {
	if l.seen[bucketNumber(objectsBucket)] > 0 {
		for i := range s.list {
			s.seen[i] = l.record(s.list[i].ID) != nil
		}
	}
	all, err := l.runs()
	if err != nil {
		return err
	}
	for _, r := range all.list {
		if r.entries/chunkEntries > uint64(len(s.order)) {
			err = l.recallEach(r, s)
		} else {
			err = l.recallRun(r, s)
		}
		if err != nil {
			return err
		}
	}
	return l.recallAlone(s)
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
	t, err := l.bucket(objectsBucket)
	if err != nil {
		return err
	}
	top, err := l.top(t)
	if err != nil || top.count == 0 {
		return err
	}
	var p *page
	var last []byte // key of the page
	for _, at := range s.order {
		id := s.list[at.at].ID
		if p == nil || bytes.Compare(id[:], last) > 0 {
			if p, err = l.leaf(t, id[:]); err == nil {
				last, err = p.key(p.count - 1)
			}
			if err != nil {
				return err
			}
		}
		_, exact, err := p.search(id[:])
		if err != nil {
			return err
		}
		s.seen[at.at] = s.seen[at.at] || exact
	}
	return nil
}
