package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// viewBytes is about how many bytes gc and backup read at a time while writers wait.
const viewBytes = 4 << 20

// errReplaced says that another program has replaced the file, purged content in it, or
// overwritten pages that were being read.
var errReplaced = errors.New("another program has rewritten it")

// source reads a whole store for gc and backup in many short views, between which others write to
// it. It reads the file without the journal, unless journal is set.
type source struct {
	ctx            context.Context //nolint:containedctx // it is one operation
	store          *store          // with its own handles, so that its waits do not delay others of this process
	op             string
	fileNumber     uint64 // of the file; see handle
	withJournal    bool
	lockedSnapshot *snapshot // set while the caller holds the lock: then it is read instead

	done, total int64
	progress    func(done, total int64)
	viewed      int // bytes that the present view has read
	largest     int // most bytes that one has
}

func (s *store) newSource(ctx context.Context, op string, progress func(done, total int64)) (*source, error) {
	_, total, err := s.Size(ctx)
	if err != nil {
		return nil, err
	}
	src := &source{ctx: ctx, store: s.withOwnHandles(), op: op, progress: progress, total: total}
	err = src.store.view(ctx, op, func(l *snapshot) error {
		src.fileNumber = l.fileNumber
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
	defer func() {
		src.largest, src.done = max(src.largest, src.viewed), src.done+int64(src.viewed)
		src.viewed = 0
	}()
	if src.lockedSnapshot != nil {
		return f(src.lockedSnapshot)
	}
	err := src.store.view(src.ctx, src.op, func(l *snapshot) error {
		if l.fileNumber != src.fileNumber {
			return src.replacedError()
		}
		if !src.withJournal {
			l.mem, l.mark = nil, 0
		}
		return f(l)
	})
	if err == nil && src.progress != nil {
		src.progress(min(src.done, src.total), src.total)
	}
	return err
}

func (src *source) replacedError() error {
	return fmt.Errorf("%s store %s: %w: %w: try again", src.op, src.store.path, errReplaced, objects.ErrBusy)
}

// scan calls f with what read makes of the entries of a bucket from a key on, when no view is
// open. read returns how many bytes it has read; 0: the entry is left out.
func scan[T any](src *source, bucket int, from []byte, read func(l *snapshot, e page.Entry) (T, int, error), f func(T) error) error {
	for from != nil {
		var list []T
		err := src.view(func(l *snapshot) error {
			entries := l.ascend(bucket, from)
			from = nil
			for e, err := range entries {
				if err != nil {
					return err
				}
				if src.viewed >= viewBytes {
					from = bytes.Clone(e.Key)
					break
				}
				one, n, err := read(l, e)
				if err != nil {
					return err
				}
				if src.viewed += len(e.Key) + n; n > 0 {
					list = append(list, one)
				}
			}
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

// soundPack reads the head of a pack, whose checksum must be right.
func (l *snapshot) soundPack(n uint32) (*pack, error) {
	p, err := l.pack(n)
	if err == nil && !p.sound {
		err = &objects.CorruptError{Cause: fmt.Errorf("pack %d: its head is damaged", n)}
	}
	return p, err
}

// heads calls f with the head of every pack, ascending.
func (src *source) heads(f func(p *pack) error) error {
	return scan(src, headsBucket, []byte{}, func(l *snapshot, e page.Entry) (p *pack, size int, err error) {
		n, err := packNumber(e.Key)
		if err == nil {
			p, err = l.soundPack(n)
		}
		return p, e.ValueSize, err
	}, f)
}

// packs calls f with the packs behind a number, ascending.
func (src *source) packs(after uint32, f func(p rawPack) error) error {
	return scan(src, headsBucket, packKey(after+1), func(l *snapshot, e page.Entry) (p rawPack, size int, err error) {
		n, err := packNumber(e.Key)
		if err == nil {
			p, err = l.rawPack(n)
		}
		return p, len(p.head) + len(p.body), err
	}, f)
}

// rawPack is a pack as it is stored.
type rawPack struct {
	n          uint32
	head, body []byte
}

func (l *snapshot) rawPack(n uint32) (rawPack, error) {
	p := rawPack{n: n}
	e, err := l.packPart(headsBucket, n)
	if err == nil {
		p.head, err = e.Value()
	}
	if err == nil {
		p.body, err = l.rawBody(n)
	}
	return p, err
}

// openPack parses a pack, and reports whether both checksums are right.
func openPack(a *arena, raw rawPack) (p *pack, data []byte, sound bool, err error) {
	if p, err = parsePack(a, raw.n, raw.head); err == nil {
		data, sound, err = decodeBody(a, p, raw.body)
	}
	return p, data, err == nil && sound && p.sound, err
}

// objectWith returns an object of a pack with its data, which is not compared with its id.
func (p *pack) objectWith(row int, body []byte, edgeBuf *[]objects.ID) objects.Object {
	o := p.Object(row, edgeBuf)
	if o.Kind != objects.KindCommit {
		from, size := p.Data(row)
		o.Data = body[from : from+size : from+size]
	}
	return o
}

// records calls f with the tombstones, and with the objects of the journal that are in no pack, as
// they are stored.
func (src *source) records(f func(id objects.ID, value []byte) error) error {
	return scan(src, objectsBucket, []byte{}, func(l *snapshot, e page.Entry) (p pair, size int, err error) {
		if len(e.Key) != idSize {
			return p, 0, invalidKeyError(objectsBucket, e.Key)
		}
		if e.Page() == nil {
			if _, packed, err := l.locate(objects.ID(e.Key)); packed || err != nil {
				return p, 0, err
			}
		}
		return readPair(l, e)
	}, func(p pair) error { return f(objects.ID(p.key), p.value) })
}

// logEntries calls f with the log entries behind a sequence number, ascending.
func (src *source) logEntries(after uint64, f func(e objects.LogEntry) error) error {
	return scan(src, logBucket, logKey(after+1), readPair, func(p pair) error {
		list, err := decodeEntries(p.key, p.value)
		for i := 0; i < len(list) && err == nil; i++ {
			err = f(list[i])
		}
		return err
	})
}

// refs calls f with every ref.
func (src *source) refs(f func(name string, target objects.ID, value []byte) error) error {
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
		return 0, invalidKeyError(headsBucket, key)
	}
	return binary.BigEndian.Uint32(key), nil
}

func invalidKeyError(bucket int, key []byte) error {
	return &objects.CorruptError{Cause: fmt.Errorf("%s: invalid key %x", buckets[bucket], slices.Clone(key))}
}
