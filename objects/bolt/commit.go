package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
)

// plan is what one transaction will change, beside what is there before it.
// Nothing of it is in the hands of bbolt before it is whole.
type plan struct {
	look  *look
	refs  map[string]objects.Ref // as they will be; a zero target: not at all
	was   map[string]objects.Ref // the same refs as they are
	log   []objects.LogEntry
	last  *objects.LogEntry // nil: not read yet
	order []objects.ID      // staged objects
	size  int

	hauled []objects.Object // of a large batch, which is the last of its group
}

func newPlan(h *handle) *plan {
	if h.pages == nil {
		h.pages = h.look()
	}
	h.pages.over, h.pages.seen, h.pages.staged = h.journal.over, h.seen, h.staged
	return &plan{look: h.pages, last: h.last, refs: map[string]objects.Ref{}, was: map[string]objects.Ref{}}
}

// ref is a ref as it is after what is planned.
func (p *plan) ref(name string) (objects.Ref, error) {
	if r, ok := p.refs[name]; ok {
		return r, nil
	}
	return p.look.ref(name)
}

// add plans a batch, or nothing of it when it gives an error. *ConflictError and
// *CorruptError say that the batch is at fault or an object; others are damage.
func (p *plan) add(b objects.Batch) error {
	moves, err := objects.Moves(b.Refs, func(name string) (objects.ID, error) {
		r, err := p.ref(name)
		return r.Target, err
	})
	if err != nil {
		return err
	}
	var fresh []objects.ID
	put := map[objects.ID][]byte{}
	for _, o := range b.Put {
		if put[o.ID] != nil {
			continue
		}
		value, err := p.fresh(o, b.Copies)
		if err != nil {
			return err
		}
		if value != nil {
			put[o.ID], fresh = value, append(fresh, o.ID)
		}
	}
	if len(moves) > 0 {
		if err := p.move(b.Note, moves); err != nil {
			return err
		}
	}
	staged := p.look.staged
	staged.mu.Lock()
	defer staged.mu.Unlock()
	for _, id := range fresh {
		staged.objects[id] = put[id]
		p.size += len(put[id])
	}
	p.order = append(p.order, fresh...)
	return nil
}

// fresh gives the record of an object that is not there yet. One that is there
// with other bytes is damaged, and putting it must not seem to have worked. One that
// was erased is there as far as copies go.
func (p *plan) fresh(o objects.Object, copies bool) ([]byte, error) {
	value := encodeObject(o)
	have, err := p.look.object(o.ID)
	switch {
	case errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrErased) && !copies:
		return value, nil
	case errors.Is(err, objects.ErrErased):
		return nil, nil
	case err == nil && !bytes.Equal(encodeObject(have), value):
		return nil, &objects.CorruptError{ID: o.ID, Cause: errors.New("other bytes are stored under its id")}
	}
	return nil, err
}

func (p *plan) move(note objects.Note, moves []objects.RefUpdate) error {
	if p.last == nil {
		last, err := p.look.lastEntry()
		if err != nil {
			return err
		}
		p.last = &last
	}
	were := make([]objects.Ref, len(moves))
	for i, u := range moves {
		var err error
		if were[i], err = p.ref(u.Name); err != nil {
			return err
		}
	}
	entry := objects.NewLogEntry(*p.last, note, moves)
	for i, u := range moves {
		if _, ok := p.refs[u.Name]; !ok {
			p.was[u.Name] = were[i]
		}
		p.refs[u.Name] = objects.Ref{Name: u.Name, Target: u.New, Version: were[i].Version + 1, Updated: entry.Note.Time}
		if u.New.IsZero() {
			p.refs[u.Name] = objects.Ref{Name: u.Name}
		}
	}
	p.log, p.last = append(p.log, entry), &entry
	p.size += 100 * len(moves)
	return nil
}

// lastEntry is the newest entry of the log; the zero one when there is none.
func (l *look) lastEntry() (objects.LogEntry, error) {
	for e, err := range l.log("", 1<<64-1) {
		return e, err
	}
	return objects.LogEntry{}, nil
}

// change is one key that a transaction writes, or deletes when value is nil.
type change struct {
	bucket     string
	key, value []byte
}

// changes lists what is planned, objects in the order in which they came.
func (p *plan) changes() []change {
	var list []change
	for _, id := range p.order {
		list = append(list, change{objectsBucket, bytes.Clone(id[:]), p.look.staged.objects[id]})
	}
	for name, r := range p.refs {
		was := p.was[name]
		if !was.Target.IsZero() && (r.Target.IsZero() || !was.Updated.Equal(r.Updated)) {
			list = append(list, change{recentBucket, recentKey(was), nil})
		}
		if r.Target.IsZero() {
			list = append(list, change{refsBucket, []byte(name), nil})
			continue
		}
		list = append(list, change{refsBucket, []byte(name), encodeRef(r)}, change{recentBucket, recentKey(r), []byte{}})
	}
	for _, e := range p.log {
		list = append(list, change{logBucket, logKey(e.Seq), encodeEntry(e)})
		for _, u := range e.Refs {
			list = append(list, change{movesBucket, movesKey(u.Name, e.Seq), []byte{}})
		}
	}
	return list
}

// commit makes a plan durable, in the journal or, when it is too large for that, in
// the file. After an error the handle is not used again.
func (s *store) commit(h *handle, p *plan) error {
	list := p.changes()
	if len(list)+len(p.hauled) == 0 {
		return nil // it is all there, and durable
	}
	err := s.samePlace(h)
	if err == nil {
		if h.journal.over.end > journalMost || p.size > frameMost {
			err = s.fold(h, list, p.hauled...)
		} else {
			err = s.record(h, list)
		}
	}
	if err != nil {
		h.broken = true
		return err
	}
	if h.last = p.last; len(p.log) > 0 {
		s.mu.Lock()
		s.signalMoved()
		s.mu.Unlock()
	}
	return nil
}

// record writes changes into the journal. When the sync fails nobody knows whether
// they are there.
func (s *store) record(h *handle, list []change) error {
	end, wrote, err := h.journal.append(list)
	if err != nil {
		if err = s.explain("write", err); wrote {
			err = objects.Unknown(err)
		}
		return err
	}
	over := h.journal.over
	over.add(list, end, over.seq+1)
	h.acknowledge()
	s.mu.Lock()
	defer s.mu.Unlock()
	h.seen, h.staged = over.now(), newStaged()
	return nil
}

// samePlace tells that the file is still the one that others will open.
func (s *store) samePlace(h *handle) error {
	here, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	mine, err := h.file.Stat()
	if err != nil {
		return err
	}
	beside, err := os.Stat(journalPath(s.path))
	if err != nil {
		return err
	}
	if !os.SameFile(here, mine) || !os.SameFile(beside, s.journal) {
		return fmt.Errorf("write store %s: another file has taken its place: %w: try again", s.path, objects.ErrUnsafe)
	}
	return nil
}
