package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
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
	purgeBytes = 4 << 20  // most bytes of packs that a step rewrites, unless one is larger
	purgeCount = 1 << 11  // most objects that a step purges
	wipeBytes  = 16 << 20 // most bytes of free pages that a step overwrites
)

var purgeKey = []byte("purge")

// purge is a purge that is not complete.
type purge struct {
	remaining    []objects.Tombstone // of objects that are not purged yet, by the packs that they are in
	planStored   bool                // the file has the list of tombstones
	journalWiped bool                // the frames that were there when it began are overwritten
	nextFreePage uint64              // free pages below it are overwritten
	wiped        bool                // all free pages are overwritten
	stepBytes    int                 // most that a step rewrites; 0: purgeBytes
}

// Purge is objects.Maintainer.
func (s *store) Purge(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (purged int, err error) {
	const op = "purge in"
	if s.readOnly {
		return 0, fmt.Errorf("%s store %s: %w", op, s.path, objects.ErrReadOnly)
	}
	t := s.withOwnHandles()
	err = t.withExclusiveHandle(ctx, op, func(h *handle) error {
		removeLeftovers(t.path, true)
		return t.resumePurge(h) // its list would be replaced by this one, and its objects count as purged already
	})
	if err != nil {
		return 0, err
	}
	p := &purge{}
	if p.remaining, err = s.tombstonesToWrite(ctx, list); err != nil || len(p.remaining) == 0 {
		return 0, err
	}
	purged = len(p.remaining)
	for done := false; !done; {
		err := t.withExclusiveHandle(ctx, op, func(h *handle) (err error) {
			done, err = p.step(t, h)
			return err
		})
		if err != nil {
			return 0, err
		}
		if progress != nil {
			progress(int64(purged-len(p.remaining)), int64(purged))
		}
	}
	return purged, nil
}

// withExclusiveHandle calls f with the store open for writing. The store has handles of its own, and waits
// for the lock as another process would.
func (s *store) withExclusiveHandle(ctx context.Context, op string, f func(h *handle) error) error {
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	h, err := s.lockAndOpen(waiting, true)
	if err != nil {
		return s.waitError(ctx, op, err)
	}
	s.mu.Lock()
	s.openHandles++
	s.mu.Unlock()
	defer s.closeHandle(h)
	return s.explain(op, f(h))
}

// flushJournal makes a checkpoint unless the journal is empty.
func (s *store) flushJournal(h *handle) error {
	if h.journal.Length() <= 0 {
		return nil
	}
	return s.checkpoint(h, h.mark)
}

// tombstonesToWrite returns the tombstones of the objects that are not purged yet, in the order of
// the packs that they are in.
func (s *store) tombstonesToWrite(ctx context.Context, requested []objects.Tombstone) ([]objects.Tombstone, error) {
	packs := map[objects.ID]uint32{}
	var plan []objects.Tombstone
	for part := range slices.Chunk(requested, purgeCount) {
		err := s.view(ctx, "purge in", func(l *snapshot) error {
			for _, t := range part {
				o, err := l.object(t.ID)
				if err == nil {
					t, err = t.Complete(o)
				}
				switch {
				case errors.Is(err, objects.ErrPurged):
					continue
				case errors.Is(err, objects.ErrNotFound) && t.Kind != 0:
				case err != nil:
					return err
				}
				at, _, err := l.locate(t.ID)
				if err != nil {
					return err
				}
				plan, packs[t.ID] = append(plan, t), at.pack
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(plan, func(a, b objects.Tombstone) int {
		return cmp.Or(cmp.Compare(packs[a.ID], packs[b.ID]), a.ID.Compare(b.ID))
	})
	return plan, nil
}

// step does a part of the purge.
func (p *purge) step(s *store, h *handle) (done bool, err error) {
	if err := s.flushJournal(h); err != nil {
		return false, err
	}
	if !p.journalWiped {
		removeLeftovers(s.path, true)
		if err := h.journal.Wipe(); err != nil {
			return false, err
		}
		p.journalWiped = true
	}
	switch {
	case len(p.remaining) > 0:
		return false, p.purgeNext(s, h)
	case !p.wiped:
		return false, p.wipeNextFreePages(h)
	}
	return true, s.commitPurge(h, []journal.Change{deleteKey(metaBucket, purgeKey)})
}

// purgeNext purges the next objects in one transaction.
func (p *purge) purgeNext(s *store, h *handle) error {
	l := newSnapshot(h.file, h.version.meta)
	var list []journal.Change
	if !p.planStored {
		list = append(list, setKey(metaBucket, purgeKey, encodeRecord(purgeKey, purgeRecordFields(&p.remaining))))
	}
	rowsByPack, size, n := map[uint32][]uint16{}, 0, 0
	for ; n < len(p.remaining) && n < purgeCount && size < cmp.Or(p.stepBytes, purgeBytes); n++ {
		t := p.remaining[n]
		value, err := l.get(objectsBucket, t.ID[:])
		if err != nil {
			return err
		}
		if !isTombstone(value) {
			list = append(list, setKey(objectsBucket, bytes.Clone(t.ID[:]), encodeTombstone(t)))
		}
		for at, err := range l.places(t.ID) {
			if err != nil {
				return err
			}
			if rowsByPack[at.pack] == nil {
				pack, err := l.pack(at.pack)
				if err != nil {
					return err
				}
				size += pack.BodySize()
			}
			rowsByPack[at.pack] = append(rowsByPack[at.pack], uint16(at.row))
		}
	}
	for n, purged := range rowsByPack {
		raw, err := l.packWithoutRows(n, purged)
		if err != nil {
			return err
		}
		list = append(list, setKey(headsBucket, packKey(n), raw.head), setKey(bodiesBucket, packKey(n), raw.body))
	}
	if err := s.commitPurge(h, list); err != nil {
		return err
	}
	p.remaining, p.planStored = p.remaining[n:], true
	return nil
}

// packWithoutRows returns a pack without the data of some objects. Every other object is compared
// with its id first, since the new checksum stands for them.
func (l *snapshot) packWithoutRows(n uint32, rows []uint16) (raw rawPack, err error) {
	if raw, err = l.rawPack(n); err != nil {
		return raw, err
	}
	p, data, sound, err := openPack(nil, raw)
	if err != nil {
		return raw, err
	}
	if !sound {
		return raw, fmt.Errorf("pack %d: %w: a checksum of it is wrong", n, errPack)
	}
	rows = append(rows, p.purged...)
	slices.Sort(rows)
	rows = slices.Compact(rows)
	body := append(make([]byte, 8, bodyStart+len(data)), byte(codecPurged))
	body = append(body, data...)
	edgeBuf := make([]objects.ID, 0, 2*p.Len())
	for i := range p.Len() {
		if _, purged := slices.BinarySearch(rows, uint16(i)); purged {
			from, size := p.Data(i)
			clear(body[bodyStart+from:][:size])
			continue
		}
		if _, err := verified(p.objectWith(i, data, &edgeBuf)); err != nil {
			return raw, err
		}
	}
	raw.body = compressFrom(body, bodyStart, 8, byte(codecZstd))
	f := parsePackHeader(raw.head)
	table, _, err := f.splitTable(raw.head)
	if err != nil {
		return raw, err
	}
	raw.head = slices.Clone(raw.head[:f.end+len(table)])
	for _, row := range rows {
		raw.head = binary.BigEndian.AppendUint16(raw.head, row)
	}
	raw.head = binary.BigEndian.AppendUint16(raw.head, uint16(len(rows)))
	raw.head[8] |= packPurged >> 8
	raw.setSums()
	return raw, nil
}

// wipeNextFreePages overwrites the next free pages, and makes that durable; with the last of them it sets
// wiped. No reader can be at them: the caller has the exclusive lock of the store. A page that is in use now
// has been written, or will be, without the purged data.
func (p *purge) wipeNextFreePages(h *handle) error {
	m := h.version.meta
	info, err := h.file.Stat()
	if err != nil {
		return err
	}
	pages, _, err := page.ReadFreelist(h.file, m)
	if err != nil {
		return err
	}
	for id := m.HighWater; int64(id)*int64(m.PageSize) < info.Size(); id++ {
		pages = append(pages, id)
	}
	first, _ := slices.BinarySearch(pages, p.nextFreePage)
	written, b := 0, make([]byte, m.PageSize)
	for _, id := range pages[first:] {
		if p.nextFreePage = id; written >= wipeBytes {
			return journal.SyncData(h.file)
		}
		at := int64(id) * int64(m.PageSize)
		n, err := h.file.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.Trim(b[:n], "\x00")) == 0 {
			continue
		}
		clear(b)
		if _, err := h.file.WriteAt(b[:n], at); err != nil {
			return err
		}
		written += n
	}
	p.wiped = true
	return journal.SyncData(h.file)
}

// purgeRecordFields is the fields of the value of the key "purge".
func purgeRecordFields(list *[]objects.Tombstone) func(r *canonical.Record) {
	return func(r *canonical.Record) {
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
}

// resumePurge completes a purge whose process was killed.
func (s *store) resumePurge(h *handle) error {
	value, err := newSnapshot(h.file, h.version.meta).get(metaBucket, purgeKey)
	if err != nil || value == nil {
		return err
	}
	p := &purge{planStored: true}
	if err = decodeRecord(purgeKey, value, purgeRecordFields(&p.remaining)); err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		done, err = p.step(s, h)
	}
	return err
}
