package bolt

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// A page of an answer is what is read at one look, before it is yielded.
const (
	pageObjects = 256
	pageBytes   = 1 << 20
	pageKeys    = 4096
)

// object reads one object, a staged one too; a missing one is a *NotFoundError.
func (l *look) object(id objects.ID) (objects.Object, error) {
	var value []byte
	if l.staged != nil {
		l.staged.mu.RLock()
		value = l.staged.objects[id]
		l.staged.mu.RUnlock()
	}
	if value == nil {
		var err error
		if value, err = l.get(objectsBucket, id[:]); err != nil {
			return objects.Object{}, err
		}
	}
	if value == nil {
		return objects.Object{}, &objects.NotFoundError{ID: id}
	}
	return decodeObject(id, value)
}

// has tells whether an object is there, without reading it.
func (l *look) has(id objects.ID) (bool, error) {
	if _, edited := l.over.get(bucketNumber(objectsBucket), id[:], &l.seen); edited {
		return true, nil
	}
	t, err := l.bucket(objectsBucket)
	if err != nil {
		return false, err
	}
	_, ok, err := l.find(t, id[:])
	return ok, err
}

// found is an element of a sequence.
type found struct {
	object objects.Object
	err    error
}

// Get is objects.Reader. It goes through the ids in order, as the file does.
func (s *store) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		ids := slices.Clone(ids)
		slices.SortFunc(ids, objects.ID.Compare)
		ids = slices.Compact(ids)
		for len(ids) > 0 {
			var page []found
			err := s.view(ctx, "read", func(l *look) error {
				size := 0
				for len(ids) > 0 && len(page) < pageObjects && size < pageBytes {
					o, err := l.object(ids[0])
					var corrupt *objects.CorruptError
					switch {
					case err == nil || errors.As(err, &corrupt):
						page = append(page, found{o, err})
					case !errors.Is(err, objects.ErrNotFound):
						return err
					}
					ids, size = ids[1:], size+len(o.Data)
				}
				return nil
			})
			for _, e := range page {
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

// Missing is objects.Reader. What is staged counts as missing: it may never come.
func (s *store) Missing(ctx context.Context, ids []objects.ID) (missing []objects.ID, err error) {
	for page := range slices.Chunk(ids, pageKeys) {
		err = s.view(ctx, "read", func(l *look) error {
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

// Find is objects.Reader.
func (s *store) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) (ids []objects.ID, err error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) > 2*len(objects.ID{}) {
		return nil, ctx.Err()
	}
	even := prefix
	if len(prefix)%2 == 1 {
		even += "0"
	}
	from, err := hex.DecodeString(even)
	if err != nil {
		return nil, err
	}
	for from != nil && err == nil {
		err = s.view(ctx, "search", func(l *look) error {
			from, err = l.findPage(&ids, kind, prefix, from, limit)
			return err
		})
	}
	return ids, err
}

// findPage adds ids from a key on, and gives the key to go on from, if any.
func (l *look) findPage(ids *[]objects.ID, kind objects.Kind, prefix string, from []byte, limit int) ([]byte, error) {
	seen := 0
	for e, err := range l.ascend(objectsBucket, from) {
		if err != nil {
			return nil, err
		}
		if len(e.key) != len(objects.ID{}) {
			return nil, errors.New("an object whose key is no id")
		}
		id := objects.ID(e.key)
		if !strings.HasPrefix(id.String(), prefix) {
			return nil, nil
		}
		if seen++; seen > pageKeys {
			return bytes.Clone(e.key), nil
		}
		if kind != 0 {
			first, err := e.first()
			if err != nil {
				return nil, err
			}
			if len(first) == 0 || objects.Kind(first[0]) != kind {
				continue
			}
		}
		if *ids = append(*ids, id); limit > 0 && len(*ids) == limit {
			return nil, nil
		}
	}
	return nil, nil
}

// Chain is objects.Reader.
func (s *store) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		a := &ahead{store: s, ctx: ctx, options: o}
		objects.Walk(ctx, a.get, tip, o)(yield)
	}
}

// ahead reads ahead of a walk: it reads a page of commits, with their content,
// at one look, and gives them out one by one.
type ahead struct {
	store   *store
	ctx     context.Context //nolint:containedctx // a walk is one call
	options objects.ChainOptions
	runs    [2][]objects.Object // two, since a walk to a fork point goes down two lines in turn
	last    int                 // the run read last
	size    int                 // of the last page
}

// get gives every object that was read at most once, so that it is the caller's own.
func (a *ahead) get(id objects.ID) (objects.Object, error) {
	for i, run := range a.runs {
		for k, o := range run {
			if o.ID == id {
				a.runs[i] = run[k+1:]
				return o, nil
			}
		}
	}
	run, err := a.read(id)
	if err != nil {
		return objects.Object{}, err
	}
	if len(a.runs[a.last]) > 0 {
		a.last = 1 - a.last
	}
	a.runs[a.last] = run[1:]
	return run[0], nil
}

// read reads an object and those that a walk will ask for next. It begins with
// few: many a walk ends soon.
func (a *ahead) read(id objects.ID) (run []objects.Object, err error) {
	a.size = min(max(4*a.size, 8), pageObjects)
	limit := a.size
	if a.options.Limit > 0 {
		limit = min(limit, 2*a.options.Limit)
	}
	err = a.store.view(a.ctx, "read", func(l *look) error {
		for size := 0; len(run) < limit && size < pageBytes; {
			o, err := l.object(id)
			if err != nil && len(run) > 0 {
				return nil // if the walk comes this far it asks again
			}
			if err != nil {
				return err
			}
			run, size = append(run, o), size+len(o.Data)
			if a.options.Content && len(o.Links) > 0 {
				if content, err := l.object(o.Links[0]); err == nil {
					run, size = append(run, content), size+len(content.Data)
				}
			}
			if len(o.Parents) == 0 {
				return nil
			}
			id = o.Parents[0]
		}
		return nil
	})
	return run, err
}
