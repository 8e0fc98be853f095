package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/compaction"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// viewBytes is about how many bytes gc and backup read at a time while writers wait.
const viewBytes = 4 << 20

// errReplaced says that another program has replaced the file, purged content in it, or
// overwritten pages that were being read.
var errReplaced = errors.New("another program has rewritten it")

// source is a [compaction.Source]: it reads a whole store in many short views, between which
// others write to it. It reads the file without the journal, unless journal is set.
type source struct {
	ctx     context.Context //nolint:containedctx // it is one operation
	store   *store          // a twin, whose waits do not delay others of this process
	op      string
	number  uint64 // of the file; see handle
	journal bool
	locked  *snapshot // set while the caller holds the lock: then it is read instead
	room    arena     // for the pack that is open

	done, total int64
	progress    func(done, total int64)
	largest     int64 // most bytes that were read while writers waited
}

func (s *store) newSource(ctx context.Context, op string, progress func(done, total int64)) (*source, error) {
	_, total, err := s.Size(ctx)
	if err != nil {
		return nil, err
	}
	src := &source{ctx: ctx, store: s.twin(), op: op, progress: progress, total: total}
	err = src.store.view(ctx, op, func(l *snapshot) error {
		src.number = l.number
		return nil
	})
	if err != nil {
		src.close()
		return nil, err
	}
	return src, nil
}

func (src *source) close() { _ = src.store.Close() }

// view calls f with the store as it is now. If another program has replaced the file or
// purged content in it, that is errReplaced.
func (src *source) view(f func(l *snapshot) error) error {
	if src.locked != nil {
		return f(src.locked)
	}
	err := src.store.view(src.ctx, src.op, func(l *snapshot) error {
		if l.number != src.number {
			return src.replaced()
		}
		if !src.journal {
			l.mem, l.mark = nil, 0
		}
		return f(l)
	})
	if err == nil && src.progress != nil {
		src.progress(min(src.done, src.total), src.total)
	}
	return err
}

func (src *source) replaced() error {
	return fmt.Errorf("%s store %s: %w: %w: try again", src.op, src.store.path, errReplaced, objects.ErrBusy)
}

// count notes that so many bytes were read in one view.
func (src *source) count(size int) {
	src.largest = max(src.largest, int64(size))
	src.done += int64(size)
}

// scan calls f with what read makes of the entries of a bucket from a key on, when no view is
// open. read returns how many bytes it has read; 0: the entry is left out.
func scan[T any](src *source, bucket int, from []byte, read func(l *snapshot, e page.Entry) (T, int, error), f func(T) error) error {
	for from != nil {
		var list []T
		err := src.view(func(l *snapshot) error {
			size, entries := 0, l.ascend(bucket, from)
			from = nil
			for e, err := range entries {
				if err != nil {
					return err
				}
				if size >= viewBytes {
					from = bytes.Clone(e.Key)
					break
				}
				one, n, err := read(l, e)
				if err != nil {
					return err
				}
				if size += len(e.Key) + n; n > 0 {
					list = append(list, one)
				}
			}
			src.count(size)
			return nil
		})
		for i := 0; err == nil && i < len(list); i++ {
			err = f(list[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pair is a key and its value.
type pair struct{ key, value []byte }

func readPair(_ *snapshot, e page.Entry) (pair, int, error) {
	value, err := e.Value()
	return pair{bytes.Clone(e.Key), value}, 1 + len(value), err
}

// View is compaction.Source.
func (src *source) View(f func(v compaction.View) error) error {
	return src.view(func(l *snapshot) error {
		v := &sourceView{l, 0}
		defer func() { src.count(v.size) }()
		return f(v)
	})
}

// sourceView is a [compaction.View].
type sourceView struct {
	*snapshot

	size int // bytes of heads that were read
}

// Locate is compaction.View.
func (v *sourceView) Locate(id objects.ID) (pack uint32, row int, ok bool, err error) {
	at, ok, err := v.locate(id)
	return at.pack, at.slot, ok, err
}

// Head is compaction.View.
func (v *sourceView) Head(number uint32) (compaction.Head, error) {
	e, err := v.ofPack(headsBucket, number)
	if err != nil {
		return compaction.Head{}, err
	}
	v.size += e.ValueSize
	return soundHead(e)
}

// Ref is compaction.View.
func (v *sourceView) Ref(name string) ([]byte, error) { return v.get(refsBucket, []byte(name)) }

// Object is compaction.View.
func (v *sourceView) Object(id objects.ID) (objects.Object, error) { return v.object(id) }

func headOf(p *pack) compaction.Head {
	return compaction.Head{Table: p.Table, Number: p.n, Others: len(p.ids)/idSize - p.Len(), Purged: p.purged}
}

// soundHead parses the head of a pack, whose checksum must be right.
func soundHead(e page.Entry) (compaction.Head, error) {
	n, err := packNumber(e.Key)
	if err != nil {
		return compaction.Head{}, err
	}
	head, err := e.Value()
	if err != nil {
		return compaction.Head{}, err
	}
	p, err := parsePack(n, head)
	if err != nil {
		return compaction.Head{}, err
	}
	if !p.sound {
		return compaction.Head{}, &objects.CorruptError{Cause: fmt.Errorf("pack %d: its head is damaged", n)}
	}
	return headOf(p), nil
}

// Heads is compaction.Source.
func (src *source) Heads(f func(h compaction.Head) error) error {
	return scan(src, headsBucket, []byte{}, func(_ *snapshot, e page.Entry) (compaction.Head, int, error) {
		h, err := soundHead(e)
		return h, e.ValueSize, err
	}, f)
}

// Packs is compaction.Source.
func (src *source) Packs(after uint32, f func(p compaction.Pack) error) error {
	return scan(src, headsBucket, packKey(after+1), func(l *snapshot, e page.Entry) (compaction.Pack, int, error) {
		p, err := l.rawPack(e)
		return p, len(p.Head) + len(p.Body), err
	}, f)
}

// rawPack reads the pack with the head e.
func (l *snapshot) rawPack(e page.Entry) (p compaction.Pack, err error) {
	if p.Number, err = packNumber(e.Key); err != nil {
		return p, err
	}
	if p.Head, err = e.Value(); err != nil {
		return p, err
	}
	p.Body, err = l.rawBody(p.Number)
	return p, err
}

// Open is compaction.Source.
func (src *source) Open(raw compaction.Pack) (o compaction.Contents, err error) {
	src.room.reset()
	p, data, sound, err := openPack(&src.room, raw)
	if err != nil {
		return o, err
	}
	room := make([]objects.ID, 0, 2*p.Len())
	return compaction.Contents{
		Head: headOf(p), Sound: sound,
		Dense:  len(p.purged) == 0 && 2*p.BodySize() >= dense.bytes && codec(raw.Body[8]) == codecZstd,
		Object: func(row int) objects.Object { return p.objectWith(row, data, &room) },
	}, nil
}

// openPack parses a pack, and reports whether both checksums are right.
func openPack(a *arena, raw compaction.Pack) (p *pack, data []byte, sound bool, err error) {
	if p, err = parsePackIn(a, raw.Number, raw.Head); err == nil {
		data, sound, err = decodeBody(a, p, raw.Body)
	}
	return p, data, err == nil && sound && p.sound, err
}

// objectWith returns an object of a pack with its data, which is not compared with its id.
func (p *pack) objectWith(row int, body []byte, room *[]objects.ID) objects.Object {
	o := p.Object(row, room)
	if o.Kind != objects.KindCommit {
		from, size := p.Data(row)
		o.Data = body[from : from+size : from+size]
	}
	return o
}

// Records is compaction.Source. An object of the journal that is in a pack too is left out.
func (src *source) Records(wanted func(id objects.ID, tombstone bool) bool, f func(r compaction.Record) error) error {
	return scan(src, objectsBucket, []byte{}, func(l *snapshot, e page.Entry) (r compaction.Record, size int, err error) {
		if len(e.Key) != idSize {
			return r, 0, errKey(objectsBucket, e.Key)
		}
		r.ID, r.Journal = objects.ID(e.Key), e.Page() == nil
		if r.Journal {
			if _, packed, err := l.locate(r.ID); packed || err != nil {
				return r, 0, err
			}
		}
		begin, err := e.Part(0, min(1, e.ValueSize))
		if r.Tombstone = isTombstone(begin); err != nil || wanted != nil && !wanted(r.ID, r.Tombstone) {
			return r, 0, err
		}
		r.Value, err = e.Value()
		return r, 1 + len(r.Value), err
	}, f)
}

// Decode is compaction.Source.
func (src *source) Decode(r compaction.Record) (objects.Object, error) {
	o, err := decodeObject(r.ID, r.Value)
	if err != nil {
		return o, err
	}
	return verified(o)
}

// Entries is compaction.Source.
func (src *source) Entries(after uint64, f func(e objects.LogEntry) error) error {
	return scan(src, logBucket, logKey(after+1), readPair, func(p pair) error {
		list, err := decodeEntries(p.key, p.value)
		for i := 0; i < len(list) && err == nil; i++ {
			err = f(list[i])
		}
		return err
	})
}

// Refs is compaction.Source.
func (src *source) Refs(f func(name string, target objects.ID, value []byte) error) error {
	return scan(src, refsBucket, []byte{}, readPair, func(p pair) error {
		r, err := decodeRef(string(p.key), p.value)
		if err != nil {
			return err
		}
		return f(r.Name, r.Target, p.value)
	})
}

// packNumber returns the pack that a key names.
func packNumber(key []byte) (uint32, error) {
	if len(key) != 4 {
		return 0, errKey(headsBucket, key)
	}
	return binary.BigEndian.Uint32(key), nil
}

func errKey(bucket int, key []byte) error {
	return &objects.CorruptError{Cause: fmt.Errorf("%s: invalid key %x", buckets[bucket], slices.Clone(key))}
}
