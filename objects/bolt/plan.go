package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// writer is what the goroutines of this process that write have in common while one
// handle is open: the store as it will be when all that is planned is written. Each
// plans its own batch, one after the other, and the first of a group writes for all of
// it; those that come meanwhile are planned on top of it, and are the next group.
type writer struct {
	store *store
	h     *handle
	disk  sync.Mutex    // who has it may write to the files
	call  chan struct{} // wakes up the keeper

	mu     sync.Mutex
	look   *look               // what is durable, and the objects that are planned
	refs   map[string]*movable // the refs that were asked for
	last   uint64              // Seq of the newest entry of the log as it will be
	ready  bool                // last is read
	moves  []objects.RefUpdate // memory for those of an entry
	key    []byte              // memory for one
	record []byte              // and for one of these
	next   *group              // that takes more; nil: none
	flying *group              // that is being written; nil: none
	size   int                 // bytes of the last groups
	ending bool                // nobody begins a group any more

	order sync.Mutex
	lines map[string][]chan struct{} // who waits to move a ref that somebody moves; order guards it

	// The mutex of the store guards these.
	users  int // who is at work with it
	served int // who was
}

// movable is a ref as it will be; a zero target: not at all.
type movable struct {
	refRecord
	was objects.Ref // before the group that moves it
	by  *group      // the last that does
}

// group is what is written together.
type group struct {
	frame  *journal.Frame
	hauled []objects.Object // of a large batch, after which it takes no more
	staged *staged
	moved  []*movable // the refs that it moves
	lead   bool       // somebody has taken on to write it

	done chan struct{} // closed when err says what has come of it
	err  error
}

// Nothing was written, and it is to be tried anew: with another handle, or with the
// ref of an Update where it is now.
var (
	errAgain   = errors.New("not written")
	errMovedOn = errors.New("the ref has moved on")
)

// mostRefs is how many refs a writer remembers.
const mostRefs = 4096

func newWriter(s *store, h *handle) *writer {
	w := &writer{
		store: s, h: h, call: make(chan struct{}, 1), look: h.look(),
		refs: map[string]*movable{}, lines: map[string][]chan struct{}{},
	}
	h.planner = w
	return w
}

// ref is a ref as it is after what is planned. mu is held.
func (w *writer) ref(name string) (*movable, error) {
	if r := w.refs[name]; r != nil {
		return r, nil
	}
	r, err := w.look.ref(name)
	if err != nil {
		return nil, err
	}
	if r.Target.IsZero() { // it may have been deleted
		e, err := w.look.newestEntry(name)
		if err != nil {
			return nil, err
		}
		r.entry = e.Hash
	}
	p := &movable{refRecord: r}
	w.refs[name] = p
	return p, nil
}

// ended tells that nothing can be planned any more. mu is held.
func (w *writer) ended() bool { return w.ending && (w.next == nil || !w.next.lead) }

// tip is where a ref is after what is planned.
func (w *writer) tip(name string) (objects.ID, error) {
	w.turn()
	defer w.mu.Unlock()
	if w.ended() {
		return objects.ID{}, errAgain
	}
	var tip objects.ID
	err := protect(func() error {
		r, err := w.ref(name)
		if err == nil {
			tip = r.Target
		}
		return err
	})
	return tip, w.store.explain("read", err)
}

// plan adds a batch to the next group, or nothing of it when it gives an error. of is
// the ref of an Update, which has seen it at a tip. lead is for the one who has to
// write the group.
func (w *writer) plan(b objects.Batch, of string, tip objects.ID) (g *group, lead bool, err error) {
	if len(b.Put) == 0 && len(b.Refs) == 0 {
		return nil, false, nil
	}
	return w.join(of, tip, func(g *group) error { return w.add(g, b) })
}

// join is plan with what adds to the group.
func (w *writer) join(of string, tip objects.ID, add func(*group) error) (g *group, lead bool, err error) {
	w.turn()
	defer w.mu.Unlock()
	if w.ended() {
		return nil, false, errAgain
	}
	if g = w.next; g == nil {
		g = w.begin()
	}
	err = protect(func() error {
		if of != "" {
			if r, err := w.ref(of); err != nil || r.Target != tip {
				return cmp.Or(err, errMovedOn)
			}
		}
		return add(g)
	})
	if errors.Is(err, errMovedOn) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, w.store.explain("read", err)
	}
	lead, g.lead = !g.lead, true
	return g, lead, nil
}

// turn locks mu, once there is a group that takes more, or none. Nobody plans upon what
// is hauled, which cannot be read before it is there.
func (w *writer) turn() {
	for {
		w.mu.Lock()
		full := w.flying
		if full == nil || full.hauled == nil {
			full = w.next
		}
		if full == nil || full.hauled == nil && full.frame.Size() < groupBytes {
			return
		}
		w.mu.Unlock()
		<-full.done
	}
}

// begin makes a group. The objects that are planned can be read by their id, so that
// one writer can stand on another. mu is held.
func (w *writer) begin() *group {
	g := &group{frame: journal.NewFrame(w.size), staged: &staged{records: map[objects.ID][]byte{}}, done: make(chan struct{})}
	w.next = g
	w.store.mu.Lock()
	w.h.staged = append(w.h.staged[:len(w.h.staged):len(w.h.staged)], g.staged)
	w.look.staged = w.h.staged
	w.store.mu.Unlock()
	return g
}

// add puts a batch into a group. *ConflictError and *CorruptError say that the batch is
// at fault or an object; others are damage. mu is held.
func (w *writer) add(g *group, b objects.Batch) (err error) {
	if bulky(b) {
		return w.haul(g, b)
	}
	var moves []objects.RefUpdate
	if len(b.Refs) > 0 {
		moves, err = objects.PendingUpdates(b.Refs, w.target)
	}
	had, size := len(g.frame.Changes), g.frame.Size()
	for i := 0; i < len(b.Put) && err == nil; i++ {
		err = w.put(g, &b.Put[i], b.Copies)
	}
	if err == nil && len(moves) > 0 {
		var last uint64
		if last, err = w.lastSeq(); err == nil {
			w.move(g, last+1, b.Note, moves)
		}
	}
	if err != nil {
		g.staged.forget(g.frame.Changes[had:])
		g.frame.Truncate(had, size)
	}
	return err
}

// target is where a ref is after what is planned. mu is held.
func (w *writer) target(name string) (objects.ID, error) {
	r, err := w.ref(name)
	if err != nil {
		return objects.ID{}, err
	}
	return r.Target, nil
}

// put puts an object into a group if it has to be. Small ones are not looked for in
// the packs, which would cost more than to write them: the fold finds out. One that is
// there with other bytes is damaged, and putting it must not seem to have worked. One
// that was erased is there as far as copies go.
func (w *writer) put(g *group, o *objects.Object, copies bool) error {
	have := w.look.record(o.ID)
	if have == nil && (copies || recordSize(o) >= looseSize) {
		if there, err := w.look.there(o, copies); there || err != nil {
			return err
		}
	}
	if have != nil {
		if !bytes.Equal(have, encodeObject(*o)) {
			return otherBytes(o.ID)
		}
		return nil
	}
	g.staged.put(o.ID, g.frame.PutFunc(objectsBucket, o.ID[:], recordSize(o), func(b []byte) []byte { return appendObject(b, o) }))
	return nil
}

// there tells whether an object is there as it should be.
func (l *look) there(o *objects.Object, copies bool) (bool, error) {
	found, err := l.object(o.ID)
	switch {
	case errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrPurged) && !copies:
		return false, nil
	case errors.Is(err, objects.ErrPurged):
		return true, nil
	case err == nil && !bytes.Equal(encodeObject(found), encodeObject(*o)):
		return false, otherBytes(o.ID)
	}
	return err == nil, err
}

func otherBytes(id objects.ID) error {
	return &objects.CorruptError{ID: id, Cause: errors.New("other bytes are stored under its id")}
}

// lastSeq is the Seq of the newest log entry after what is planned. mu is held.
func (w *writer) lastSeq() (uint64, error) {
	if !w.ready {
		last, err := w.look.newestEntry("")
		if err != nil {
			return 0, err
		}
		w.last, w.ready = last.Seq, true
	}
	return w.last, nil
}

// move plans one entry of the log, whose refs were asked for.
func (w *writer) move(g *group, seq uint64, note objects.Note, moves []objects.RefUpdate) {
	w.moves = append(w.moves[:0], moves...) // the batch is the caller's
	moves = w.moves
	for i := range moves {
		moves[i].Prev = w.refs[moves[i].Name].entry
	}
	entry := objects.NewLogEntry(seq, note, moves)
	w.key = binary.BigEndian.AppendUint64(w.key[:0], entry.Seq)
	w.putSealed(g, logBucket, w.key, entry.Record())
	for i := range moves {
		u := &moves[i]
		r := w.refs[u.Name]
		if r.by != g {
			r.was, r.by = r.Ref, g
			g.moved = append(g.moved, r)
		}
		r.Target, r.Version, r.Updated, r.entry = u.New, r.Version+1, entry.Note.Time, entry.Hash
		if u.New.IsZero() {
			r.Ref = objects.Ref{Name: u.Name}
		}
		w.key = appendMovesKey(w.key[:0], u.Name, entry.Seq)
		g.frame.Put(movesBucket, w.key)
	}
	w.last = seq
}

// putSealed puts a record with its checksum.
func (w *writer) putSealed(g *group, bucket int, key, record []byte) {
	sum := objects.Hash(key, record)
	g.frame.Put(bucket, key, sum[:sealSize], record)
}

// close ends a group: nobody joins it any more. mu is held.
func (w *writer) close(g *group) {
	w.next, w.flying = nil, g
	for _, r := range g.moved {
		if was := &r.was; !was.Target.IsZero() && (r.Target.IsZero() || !was.Updated.Equal(r.Updated)) {
			w.key = appendRecentKey(w.key[:0], was)
			g.frame.Delete(recentBucket, w.key)
		}
		w.key = append(w.key[:0], r.Name...)
		if r.Target.IsZero() {
			g.frame.Delete(refsBucket, w.key)
			continue
		}
		w.record = appendRefRecord(w.record[:0], &r.refRecord)
		w.putSealed(g, refsBucket, w.key, w.record)
		w.key = appendRecentKey(w.key[:0], &r.Ref)
		g.frame.Put(recentBucket, w.key)
	}
	w.size = max(g.frame.Size(), w.size*3/4)
}

// renew goes on to the file as a checkpoint has left it, before the next one writes over
// what it was: a look that plans is not counted among those of a moment. mu is not held.
func (w *writer) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.look = w.h.look()
}

// landed takes in a group that is durable now, or has failed. disk is held, and mu not.
func (w *writer) landed(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = w.ending || w.h.broken.Load()
	if w.flying == g {
		w.flying = nil
	}
	if w.next == nil && len(w.refs) > mostRefs {
		clear(w.refs)
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	var staged []*staged
	for _, one := range w.h.staged { // others may be reading the list
		if one != g.staged {
			staged = append(staged, one)
		}
	}
	w.h.staged = staged
	w.look.mem, w.look.mark, w.look.staged = w.h.mem, w.h.mark, staged
}

// staged are the objects of a group that is not written yet.
type staged struct {
	mu      sync.RWMutex
	records map[objects.ID][]byte
}

func (s *staged) put(id objects.ID, record []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[id] = record
}

// get returns the record of an object; nil: it is not there.
func (s *staged) get(id objects.ID) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records[id]
}

// forget removes the objects of changes that are not written after all.
func (s *staged) forget(list []journal.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		if c.Bucket == objectsBucket {
			delete(s.records, objects.ID(c.Key))
		}
	}
}
