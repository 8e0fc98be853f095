package bolt

import "github.com/tract-vcs/tract/objects"

// A batch that is too large for the journal is written by a checkpoint. Nobody reads its objects
// before they are written, and they are looked up all at once.

// isBulk reports whether a batch is too large for the journal.
func isBulk(b objects.Batch) bool {
	size := 0
	for i := range b.Put {
		size += len(b.Put[i].Data)
	}
	return size > maxFrameSize
}

// planBulk adds a large batch to a group, which takes no more batches then, or nothing of it if it
// returns an error. mu is held.
func (w *writer) planBulk(g *group, b objects.Batch) (err error) {
	if b.Put, err = w.withoutStored(b); err != nil {
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

// withoutStored returns the objects of a batch that are not stored yet, each once, in their
// order.
func (w *writer) withoutStored(b objects.Batch) ([]objects.Object, error) {
	places, err := w.planned.possiblePlaces(b.Put)
	if err != nil {
		return nil, err
	}
	fresh, met := make([]objects.Object, 0, len(b.Put)), make(map[objects.ID]bool, len(b.Put))
	for i := range b.Put {
		o := &b.Put[i]
		if met[o.ID] {
			continue
		}
		met[o.ID] = true
		there := len(places[o.ID]) > 0
		if !there {
			there, err = w.planned.hasRecord(&o.ID)
		}
		if there && err == nil {
			there, err = w.planned.isStored(o, b.Copies)
		}
		if err != nil {
			return nil, err
		}
		if !there {
			fresh = append(fresh, *o)
		}
	}
	return fresh, nil
}
