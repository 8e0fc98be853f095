package bolt

import (
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A batch that is too large for the journal goes into packs as it came: nobody has to
// read it before it is there, so none of its objects is staged, and they are looked up
// all at once.

// bulky tells whether a batch is to be hauled.
func isBulk(b objects.Batch) bool {
	size := 0
	for i := range b.Put {
		size += len(b.Put[i].Data)
	}
	return size > frameMost
}

// haul puts a large batch into a group, which takes no more then, or nothing of it when
// it gives an error. mu is held.
func (w *writer) addBulk(g *group, b objects.Batch) (err error) {
	if b.Put, err = w.withoutKnown(b); err != nil {
		return err
	}
	if !isBulk(b) {
		return w.add(g, b)
	}
	if err := w.add(g, objects.Batch{Refs: b.Refs, Note: b.Note}); err != nil {
		return err
	}
	g.bulk = b.Put
	return nil
}

// unknown is the objects of a batch that are not there yet, each once, in their order.
func (w *writer) withoutKnown(b objects.Batch) ([]objects.Object, error) {
	s := sortIDs(b.Put)
	if err := w.snapshot.findStored(s); err != nil {
		return nil, err
	}
	if !slices.Contains(s.again, true) && !slices.Contains(s.seen, true) {
		return b.Put, nil
	}
	fresh := make([]objects.Object, 0, len(b.Put))
	for i := range b.Put {
		o, there := &b.Put[i], s.again[i]
		if s.seen[i] && !there {
			var err error
			if there, err = w.snapshot.there(o, b.Copies); err != nil {
				return nil, err
			}
		}
		if !there {
			fresh = append(fresh, *o)
		}
	}
	return fresh, nil
}
