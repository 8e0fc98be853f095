package bolt

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A page of results is what is read in one snapshot, before any of it is yielded.
const (
	pageObjects = 256
	getObjects  = 1024
	pageKeys    = 4096
)

// Get is objects.Reader. It follows the order of the ids, which mostly is that of the packs.
func (s *store) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		g := &getter{rest: unique(ids), most: getObjects}
		for len(g.rest) > 0 {
			g.page = g.page[:0]
			err := s.view(ctx, "read", g.read)
			for _, e := range g.page {
				if !yield(e.object, e.err) {
					return
				}
			}
			if err != nil {
				yield(objects.Object{}, err)
				return
			}
		}
	}
}

// unique returns ids without repetitions.
func unique(ids []objects.ID) []objects.ID {
	seen, list := make(map[objects.ID]struct{}, len(ids)), make([]objects.ID, 0, len(ids))
	for _, id := range ids {
		if _, again := seen[id]; !again {
			seen[id] = struct{}{}
			list = append(list, id)
		}
	}
	return list
}

// getter is the state of one Get.
type getter struct {
	scan readAdvice
	rest []objects.ID
	page []found
	most int   // objects of a page, and so many KiB of data
	at   place // of the next object, if the last page has found it; pack 0: unknown
}

// found is an object, or the error that concerns it.
type found struct {
	object objects.Object
	err    error
}

// wanted is the rows that a page needs of one pack.
type wanted struct {
	pack  *pack
	slots []int
	size  int
}

// read reads the next page: at least most objects, and the further ones of the last pack.
func (g *getter) read(l *snapshot) error {
	c := cursor{snapshot: l}
	if len(g.rest) > pageObjects {
		l.scan = &g.scan
	}
	if g.at.pack > 0 && len(g.rest) > 0 {
		c.begin(g.at, g.rest[0])
		g.at = place{}
	}
	w := wanted{}
	size := 0
	for len(g.rest) > 0 && size < g.most<<10 {
		id := g.rest[0]
		slot, ok, err := c.find(id)
		switch {
		case ofOneObject(err):
			g.page = append(g.page, found{objects.Object{ID: id}, err})
			g.rest = g.rest[1:]
			continue
		case err != nil:
			return err
		case ok && w.pack != c.pack:
			if err := g.take(l, w); err != nil {
				return err
			}
			if w = (wanted{pack: c.pack, slots: w.slots[:0]}); len(g.page) >= g.most {
				g.at = c.at
				return nil
			}
			fallthrough
		case ok:
			_, more := w.pack.Data(slot)
			w.slots, w.size = append(w.slots, slot), w.size+more
			size += more
			g.rest = g.rest[1:]
			continue
		}
		if err := g.take(l, w); err != nil { // in the order of the ids
			return err
		}
		if w = (wanted{slots: w.slots[:0]}); len(g.page) >= g.most {
			return nil
		}
		o, err := l.object(id)
		if err == nil || ofOneObject(err) {
			g.page = append(g.page, found{o, err})
		} else if !errors.Is(err, objects.ErrNotFound) {
			return err
		}
		g.rest, size = g.rest[1:], size+len(o.Data)
	}
	return g.take(l, w)
}

// take reads objects of one pack: its whole body if most of it is wanted.
func (g *getter) take(l *snapshot, w wanted) error {
	if w.pack == nil {
		return nil
	}
	if 2*w.size < w.pack.BodySize() || len(w.slots) < 4 {
		for _, slot := range w.slots {
			o, err := l.readPacked(w.pack, slot)
			if err != nil && !ofOneObject(err) {
				return err
			}
			g.page = append(g.page, found{o, err})
		}
		return nil
	}
	body, sound, err := l.body(w.pack)
	if err != nil && !errors.Is(err, errPack) {
		return err
	}
	room := make([]objects.ID, 0, len(w.slots))
	for _, slot := range w.slots {
		o, err := w.pack.whole(slot, body, sound, err, &room)
		g.page = append(g.page, found{o, err})
	}
	return nil
}

// whole returns an object of a pack whose body was read, or could not be read because of err.
// The data is a part of the head or of the body.
func (p *pack) whole(slot int, body []byte, sound bool, err error, room *[]objects.ID) (objects.Object, error) {
	o := p.Object(slot, room)
	switch {
	case o.Kind == objects.KindCommit:
		sound, err = true, nil
	case err == nil:
		from, size := p.Data(slot)
		o.Data = body[from : from+size : from+size]
	}
	if err != nil {
		return objects.Object{ID: o.ID}, packError(o.ID, err)
	}
	if !sound || !p.sound {
		return verified(o)
	}
	return o, nil
}

// ofOneObject reports whether an error concerns one object only.
func ofOneObject(err error) bool {
	var c *objects.CorruptError
	return errors.As(err, &c) && !c.ID.IsZero() || errors.Is(err, objects.ErrPurged)
}

// Missing is objects.Reader. An object that is planned counts as missing: it may never be
// written.
func (s *store) Missing(ctx context.Context, ids []objects.ID) (missing []objects.ID, err error) {
	for page := range slices.Chunk(ids, pageKeys) {
		err = s.view(ctx, "read", func(l *snapshot) error {
			for _, id := range page {
				ok, err := l.has(id)
				if err != nil {
					return err
				}
				if !ok {
					missing = append(missing, id)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}
