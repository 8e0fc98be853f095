package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// A purge writes a tombstone for each object and overwrites the data of the object with
// zeros in every pack that has it. It rewrites these packs and nothing else, so it needs
// about as much free disk space as they take.
//
// It is done in steps, each of which holds the lock of the store for a moment. The
// transaction of the first step also stores the list of tombstones under the key "purge":
// if the process is killed, the next writer completes the purge. When all packs are
// rewritten, the pages that are free by then are overwritten, and the key is deleted last.
const (
	purgeBytes = 4 << 20  // most bytes of packs and large objects that a step rewrites, unless one is larger
	purgeCount = 1 << 11  // most objects that a step erases
	wipeBytes  = 16 << 20 // most bytes of free pages that a step overwrites
)

var purgeKey = []byte("purge")

// purge is a purge that is not complete.
type purge struct {
	rest    []objects.Tombstone // of objects that are not erased yet, by the packs that they are in
	stored  bool                // the file has the list of tombstones
	journal bool                // the frames that were there when it began are overwritten
	page    uint64              // free pages below it are overwritten
	wiped   bool                // all free pages are overwritten
	bytes   int                 // most that a step rewrites; 0: purgeBytes
}

// Purge is objects.Maintainer.
func (s *store) Purge(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (erased int, err error) {
	const op = "erase in"
	if s.readOnly {
		return 0, fmt.Errorf("%s store %s: %w", op, s.path, objects.ErrReadOnly)
	}
	if err := s.tidy(ctx, op, true); err != nil {
		return 0, err
	}
	p := &purge{}
	if p.rest, err = s.planPurge(ctx, list); err != nil || len(p.rest) == 0 {
		return 0, err
	}
	erased = len(p.rest)
	for done := false; !done; {
		t := s.twin()
		err := t.exclusively(ctx, op, func(h *handle) (err error) {
			done, err = p.step(t, h)
			return err
		})
		if err != nil {
			return 0, err
		}
		if progress != nil {
			progress(int64(erased-len(p.rest)), int64(erased))
		}
	}
	return erased, nil
}

// exclusively calls f with the store open for writing. It is for a twin, which waits for
// the lock as another process would.
func (s *store) exclusively(ctx context.Context, op string, f func(h *handle) error) error {
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	h, err := s.openHandle(waiting, true)
	if err != nil {
		return s.waited(ctx, op, err)
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	defer s.shut(h)
	return s.explain(op, f(h))
}

// planPurge returns the tombstones of the objects that are not erased yet, in the order of
// the packs that they are in.
func (s *store) planPurge(ctx context.Context, list []objects.Tombstone) ([]objects.Tombstone, error) {
	type planned struct {
		objects.Tombstone
		pack uint32
	}
	var plan []planned
	for part := range slices.Chunk(list, purgeCount) {
		err := s.view(ctx, "erase in", func(l *snapshot) error {
			for _, t := range part {
				o, pack, err := l.describe(t.ID)
				switch {
				case errors.Is(err, objects.ErrPurged):
					continue
				case errors.Is(err, objects.ErrNotFound) && t.Kind != 0:
				case err != nil:
					return err
				default:
					if t, err = t.Complete(o); err != nil {
						return err
					}
				}
				plan = append(plan, planned{t, pack})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(plan, func(a, b planned) int { return cmp.Or(cmp.Compare(a.pack, b.pack), a.ID.Compare(b.ID)) })
	rest := make([]objects.Tombstone, len(plan))
	for i := range plan {
		rest[i] = plan[i].Tombstone
	}
	return rest, nil
}

// describe reads an object. pack is one that it is in, or 0.
func (l *snapshot) describe(id objects.ID) (o objects.Object, pack uint32, err error) {
	if l.record(id) == nil {
		at, _, err := l.locate(id)
		if err != nil {
			return o, 0, err
		}
		pack = at.pack
	}
	o, err = l.object(id)
	return o, pack, err
}

// step does a part of the purge.
func (p *purge) step(s *store, h *handle) (done bool, err error) {
	if h.journal.Length() > 0 {
		if err := s.checkpoint(h, h.mark); err != nil {
			return false, err
		}
	}
	if !p.journal {
		if err := h.journal.Wipe(); err != nil {
			return false, err
		}
		p.journal = true
	}
	switch {
	case len(p.rest) > 0:
		return false, p.erase(s, h)
	case !p.wiped:
		return false, p.wipeFree(h)
	}
	return true, s.rewrite(h, []journal.Change{deleteKey(metaBucket, purgeKey)})
}

// erase erases the next objects in one transaction.
func (p *purge) erase(s *store, h *handle) error {
	l := newSnapshot(h.file, h.now.meta)
	rows, size, n := map[uint32][]uint16{}, 0, 0
	var list []journal.Change
	for ; n < len(p.rest) && n < purgeCount && size < cmp.Or(p.bytes, purgeBytes); n++ {
		t := p.rest[n]
		value, err := l.get(objectsBucket, t.ID[:])
		if err != nil {
			return err
		}
		if !isTombstone(value) {
			list = append(list, setKey(objectsBucket, bytes.Clone(t.ID[:]), encodeTombstone(t)))
			size += len(value)
		}
		places, err := l.places(t.ID)
		if err != nil {
			return err
		}
		for _, at := range places {
			if rows[at.pack] == nil {
				pack, err := l.pack(at.pack)
				if err != nil {
					return err
				}
				size += pack.BodySize()
			}
			rows[at.pack] = append(rows[at.pack], uint16(at.slot))
		}
	}
	for n, some := range rows {
		head, body, err := l.purgeRows(n, some)
		if err != nil {
			return err
		}
		list = append(list, setKey(headsBucket, packKey(n), head), setKey(bodiesBucket, packKey(n), body))
	}
	if !p.stored {
		list = append(list, setKey(metaBucket, purgeKey, encodePurge(p.rest)))
	}
	if err := s.rewrite(h, list); err != nil {
		return err
	}
	p.rest, p.stored = p.rest[n:], true
	return nil
}

// purgeRows returns the head and the body of a pack without the data of some objects. Every
// other object is compared with its id first, since the new checksum stands for them.
func (l *snapshot) purgeRows(n uint32, rows []uint16) (head, body []byte, err error) {
	p, err := l.pack(n)
	if err != nil {
		return nil, nil, err
	}
	e, err := l.ofPack(headsBucket, n)
	if err != nil {
		return nil, nil, err
	}
	old, err := e.Value()
	if err != nil {
		return nil, nil, err
	}
	data, sound, err := l.body(p)
	if err != nil {
		return nil, nil, err
	}
	if !p.sound || !sound {
		return nil, nil, fmt.Errorf("pack %d: %w: a checksum of it is wrong", n, errPack)
	}
	rows = append(rows, p.purged...)
	slices.Sort(rows)
	rows = slices.Compact(rows)
	body = append(make([]byte, 8, bodyStart+len(data)), byte(codecPurged))
	body = append(body, data...)
	room := make([]objects.ID, 0, 2*p.Len())
	for i := range p.Len() {
		if _, erased := slices.BinarySearch(rows, uint16(i)); erased {
			from, size := p.Data(i)
			clear(body[bodyStart+from:][:size])
			continue
		}
		o, err := p.whole(i, data, false, nil, &room)
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	body = compressBody(body)
	table, _, err := parsePackHeader(old).splitTable(old)
	if err != nil {
		return nil, nil, err
	}
	head = append(slices.Clone(old[:parsePackHeader(old).end]), table...)
	for _, row := range rows {
		head = binary.BigEndian.AppendUint16(head, row)
	}
	head = binary.BigEndian.AppendUint16(head, uint16(len(rows)))
	head[8] |= packPurged >> 8
	binary.BigEndian.PutUint64(head, checksum.Sum(packKey(n), head[8:]))
	binary.BigEndian.PutUint64(body, checksum.Sum(packKey(n), body[8:]))
	return head, body, nil
}

// wipeFree overwrites the next free pages, and makes that durable. No reader can be at
// them: the caller has the exclusive lock of the store. A page that is in use now has been
// written, or will be, without the erased data.
func (p *purge) wipeFree(h *handle) error {
	m := h.now.meta
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	free, _, err := page.ReadFreelist(h.file, m)
	if err != nil {
		return err
	}
	written := 0
	for ; len(free) > 0 && written < wipeBytes; free = free[8:] {
		id := page.Order.Uint64(free)
		if id < p.page {
			continue
		}
		n, err := wipePage(h.file, int64(id)*int64(m.PageSize), m.PageSize)
		if err != nil {
			return err
		}
		written, p.page = written+n, id+1
	}
	for at := int64(m.HighWater) * int64(m.PageSize); at < info.Size() && len(free) == 0; at += int64(m.PageSize) {
		if _, err := wipePage(h.file, at, int(min(int64(m.PageSize), info.Size()-at))); err != nil {
			return err
		}
	}
	p.wiped = len(free) == 0
	return journal.SyncData(h.file)
}

// wipePage overwrites a part of a file unless it holds only zeros. It returns how many bytes
// it has written.
func wipePage(f *os.File, at int64, size int) (int, error) {
	b := make([]byte, size)
	if _, err := f.ReadAt(b, at); err != nil {
		return 0, err
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return 0, nil
	}
	clear(b)
	return f.WriteAt(b, at)
}

// encodePurge makes the value of the key "purge".
func encodePurge(list []objects.Tombstone) []byte {
	var r canonical.Record
	purgeFields(&r, &list)
	return seal(purgeKey, r.Bytes())
}

func decodePurge(value []byte) (list []objects.Tombstone, err error) {
	record, err := unseal(purgeKey, value)
	if err != nil {
		return nil, err
	}
	r := canonical.NewReader(record)
	purgeFields(&r, &list)
	return list, r.Err()
}

func purgeFields(r *canonical.Record, list *[]objects.Tombstone) {
	canonical.List(r, 1, list, func(t *objects.Tombstone) []byte {
		return append(bytes.Clone(t.ID[:]), t.Record()...)
	}, func(t *objects.Tombstone, b []byte) (err error) {
		if len(b) < idSize {
			return errors.New("a tombstone without an id")
		}
		*t, err = objects.ParseTombstone(objects.ID(b[:idSize]), b[idSize:])
		return err
	})
}

// resumePurge completes a purge whose process was killed.
func (s *store) resumePurge(h *handle) error {
	value, err := newSnapshot(h.file, h.now.meta).get(metaBucket, purgeKey)
	if err != nil || value == nil {
		return err
	}
	p := &purge{stored: true}
	if p.rest, err = decodePurge(value); err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		done, err = p.step(s, h)
	}
	return err
}
