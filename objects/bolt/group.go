package bolt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// Group commit. The goroutines of this process that write share one writer. Each encodes
// its own batch into the open group under writer.mu, on top of what was planned before it.
// The first of a group is its leader: it waits for the group before it to be written,
// closes its own, writes it with one write and one sync, and wakes the others. Batches that
// come meanwhile form the next group.
//
// A batch may depend on one of a group that is not durable yet. If that group cannot be
// written the handle is broken, the groups that depend on it fail with errRetry, and their
// batches are planned again with a new writer.

// groupBytes is the size of a group from which on it takes no more batches.
const groupBytes = 16 << 20

// plannedRefs is how many refs a writer remembers.
const plannedRefs = 4096

// writer is what the writing goroutines share while one handle is open: the store as it
// will be when everything that is planned is written.
type writer struct {
	store  *store
	h      *handle
	commit sync.Mutex // held while the files are written

	mu             sync.Mutex
	planned        *snapshot             // the store with all that is planned
	known          map[string]*refRecord // as planned, of the refs that were asked for; a zero target: deleted
	newestSeq      uint64                // Seq of the newest log entry as planned
	newestSeqKnown bool
	open           *group // takes batches; nil: none
	committing     *group // is being written; nil: none
	recentSize     int    // bytes of the last groups
	stopped        bool   // no group is opened any more

	refs refLocks // one Update of a ref runs at a time

	// The mutex of the store guards these.
	users   int       // calls that use the writer
	lastUse time.Time // when one left it last
}

// group is what is written together.
type group struct {
	frame     *journal.Frame
	bulk      []objects.Object // of a large batch, after which the group takes no more
	mark      memtable.Mark    // of the memtable after its changes
	movesRefs bool
	hasLeader bool

	done chan struct{} // closed when err is final
	err  error
}

// Nothing was written, and the batch is to be planned again: with another writer, or with
// the present tip of the ref of an Update.
var (
	errRetry    = errors.New("not written")
	errRefMoved = errors.New("the ref has moved")
)

func newWriter(s *store, h *handle) *writer {
	w := &writer{store: s, h: h, known: map[string]*refRecord{}, refs: refLocks{locks: map[string]*refLock{}}}
	h.planner = w
	w.resetPlannedSnapshot()
	return w
}

// plannedRef returns a ref as planned; one that does not exist has a zero target. mu is held.
func (w *writer) plannedRef(name string) (refRecord, error) {
	if r := w.known[name]; r != nil {
		return *r, nil
	}
	r, err := w.planned.ref(name)
	if err != nil {
		return refRecord{}, err
	}
	if r.Target.IsZero() { // it may have been deleted
		e, err := w.planned.newestEntry(name)
		if err != nil {
			return refRecord{}, err
		}
		r.entry = e.Hash
	}
	w.known[name] = &r
	return r, nil
}

// plannedTarget returns the target of a ref as planned. mu is held.
func (w *writer) plannedTarget(name string) (objects.ID, error) {
	r, err := w.plannedRef(name)
	return r.Target, err
}

// refusesBatches reports whether no batch can be planned any more. mu is held.
func (w *writer) refusesBatches() bool { return w.stopped && (w.open == nil || !w.open.hasLeader) }

// tip returns the target of a ref as planned.
func (w *writer) tip(name string) (tip objects.ID, err error) {
	w.lockToPlan()
	defer w.mu.Unlock()
	if w.refusesBatches() {
		return objects.ID{}, errRetry
	}
	err = protect(func() (err error) {
		tip, err = w.plannedTarget(name)
		return err
	})
	return tip, w.store.explain("read", err)
}

// plan adds a batch to the open group, or nothing of it if it returns an error. The ref of
// an Update must have the tip that its function was given. leads reports that the caller
// has to write the group.
func (w *writer) plan(b objects.Batch, ref string, tip objects.ID) (g *group, leads bool, err error) {
	if len(b.Put) == 0 && len(b.Refs) == 0 {
		return nil, false, nil
	}
	return w.join(func(g *group) error {
		if ref != "" {
			if now, err := w.plannedTarget(ref); err != nil || now != tip {
				return cmp.Or(err, errRefMoved)
			}
		}
		return w.add(g, b)
	})
}

// join calls add with the open group, which has nothing of it if add returns an error. What is
// planned can be read at once, so that one batch can depend on another.
func (w *writer) join(add func(*group) error) (g *group, leads bool, err error) {
	w.lockToPlan()
	defer w.mu.Unlock()
	if w.refusesBatches() {
		return nil, false, errRetry
	}
	if w.open == nil {
		w.open = &group{frame: journal.NewFrame(w.recentSize), done: make(chan struct{})}
	}
	g = w.open
	had, size := len(g.frame.Changes), g.frame.Size()
	err = protect(func() error { return add(g) })
	if err != nil {
		g.frame.Truncate(had, size)
	}
	if errors.Is(err, errRefMoved) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, w.store.explain("read", err)
	}
	w.h.mem.Add(g.frame.Changes[had:])
	g.mark = w.h.mem.Mark()
	leads, g.hasLeader = !g.hasLeader, true
	return g, leads, nil
}

// lockToPlan locks mu as soon as the open group accepts another batch. Nothing is planned on top of a bulk
// batch, whose objects cannot be read before they are written.
func (w *writer) lockToPlan() {
	for {
		w.mu.Lock()
		full := w.committing
		if full == nil || full.bulk == nil {
			full = w.open
		}
		if full == nil || full.bulk == nil && full.frame.Size() < groupBytes {
			return
		}
		w.mu.Unlock()
		<-full.done
	}
}

// add puts a batch into a group. *ConflictError and *CorruptError concern the batch or an object; any other error is damage. mu is held.
func (w *writer) add(g *group, b objects.Batch) (err error) {
	if isBulk(b) {
		return w.planBulk(g, b)
	}
	var moves []objects.RefUpdate
	if len(b.Refs) > 0 {
		moves, err = objects.PendingUpdates(b.Refs, w.plannedTarget)
	}
	for i := 0; i < len(b.Put) && err == nil; i++ {
		err = w.put(g, &b.Put[i], b.Copies)
	}
	if err == nil && len(moves) > 0 {
		var last uint64
		if last, err = w.lastSeq(); err == nil {
			w.planMoves(g, last+1, b.Note, moves)
		}
	}
	return err
}

// put puts an object into a group unless it is there. It is not looked for in the packs,
// which would cost more than writing it: the checkpoint leaves it out. An object
// that is there with other bytes is damaged, and putting it must not seem to succeed. One
// that was purged counts as there for a batch of copies, which is looked for.
func (w *writer) put(g *group, o *objects.Object, copies bool) error {
	if have := w.planned.journalRecord(o.ID); have != nil {
		if !bytes.Equal(have, encodeObject(*o)) {
			return differentBytesError(o.ID)
		}
		return nil
	}
	if copies {
		if there, err := w.planned.isStored(o, copies); there || err != nil {
			return err
		}
	}
	g.frame.Put(objectsBucket, o.ID[:], encodeObject(*o))
	return nil
}

// isStored reports whether an object is stored as it should be.
func (l *snapshot) isStored(o *objects.Object, purgedCounts bool) (bool, error) {
	found, err := l.object(o.ID)
	switch {
	case errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrPurged) && !purgedCounts:
		return false, nil
	case errors.Is(err, objects.ErrPurged):
		return true, nil
	case err == nil && !bytes.Equal(encodeObject(found), encodeObject(*o)):
		return false, differentBytesError(o.ID)
	}
	return err == nil, err
}

func differentBytesError(id objects.ID) error {
	return &objects.CorruptError{ID: id, Cause: errors.New("other bytes are stored under its id")}
}

// lastSeq returns the Seq of the newest log entry as planned. mu is held.
func (w *writer) lastSeq() (uint64, error) {
	if !w.newestSeqKnown {
		last, err := w.planned.newestEntry("")
		if err != nil {
			return 0, err
		}
		w.newestSeq, w.newestSeqKnown = last.Seq, true
	}
	return w.newestSeq, nil
}

// planMoves plans one log entry and its moves of refs, which were asked for before. mu is held.
func (w *writer) planMoves(g *group, seq uint64, note objects.Note, moves []objects.RefUpdate) {
	moves = slices.Clone(moves) // those of a batch are the caller's
	for i := range moves {
		moves[i].Prev = w.known[moves[i].Name].entry
	}
	entry, record := objects.EncodeLogEntry(seq, note, moves)
	key := logKey(seq)
	g.frame.Put(logBucket, key, withChecksum(key, record))
	for _, u := range moves {
		r := w.known[u.Name]
		g.frame.Put(movesBucket, movesKey(u.Name, seq), []byte{})
		if !r.Target.IsZero() {
			g.frame.Delete(recentBucket, recentKey(r.Ref))
		}
		r.entry = entry.Hash
		if u.New.IsZero() {
			r.Ref = objects.Ref{Name: u.Name}
			g.frame.Delete(refsBucket, []byte(u.Name))
			continue
		}
		r.Target, r.Version, r.Updated = u.New, r.Version+1, entry.Note.Time
		g.frame.Put(refsBucket, []byte(u.Name), encodeRef(*r))
		g.frame.Put(recentBucket, recentKey(r.Ref), []byte{})
	}
	w.newestSeq, g.movesRefs = seq, true
}

// finish waits until what was planned is written, and writes it if the caller leads. A
// batch that failed, or that has nothing to write, may have seen what is not durable yet:
// its result is held back until that is.
func (w *writer) finish(g *group, leads bool, err error) error {
	switch {
	case errors.Is(err, errRetry):
		return err
	case leads:
		w.write(g)
		return g.err
	case g != nil:
		<-g.done
		return g.err
	}
	if g = w.newestGroup(); g != nil {
		if <-g.done; g.err != nil {
			return errRetry
		}
	}
	return err
}

// newestGroup returns the newest group that is planned; nil: everything is written.
func (w *writer) newestGroup() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open != nil && w.open.hasLeader {
		return w.open
	}
	return w.committing
}

// write writes a group, once the group before it is written.
func (w *writer) write(g *group) {
	w.commit.Lock()
	w.mu.Lock()
	w.open, w.committing = nil, g
	w.mu.Unlock()
	if w.h.broken.Load() {
		g.err = errRetry // what it depends on is not there
	} else {
		g.err = w.store.commitGroup(w.h, g)
	}
	w.clearCommitting(g)
	close(g.done)
	w.store.checkpointIfFull(w)
	w.stopIfBrokenOrContended() // before another leader can write
	w.commit.Unlock()
}

// clearCommitting notes that a group is no longer being written: it is durable now, or has failed. commit is
// held, mu is not.
func (w *writer) clearCommitting(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = w.stopped || w.h.broken.Load()
	w.committing = nil
	w.recentSize = max(g.frame.Size(), w.recentSize*3/4)
	if w.open == nil && len(w.known) > plannedRefs {
		clear(w.known)
	}
}

// resetPlannedSnapshot makes the writer plan on the present state of the handle, on top of which it puts the
// open group again. mu is held, or nobody else has the writer.
func (w *writer) resetPlannedSnapshot() {
	w.planned = w.h.snapshot()
	w.planned.mark = memtable.Newest
	if g := w.open; g != nil {
		w.h.mem.Add(g.frame.Changes)
		g.mark = w.h.mem.Mark()
	}
}

// commitGroup makes a group durable: in the journal, or, if it is too large for that, in
// the file. After an error the handle is broken.
func (s *store) commitGroup(h *handle, g *group) error {
	if len(g.frame.Changes)+len(g.bulk) == 0 {
		return nil // everything is there, and durable
	}
	err := s.checkNotReplaced(h)
	if err == nil {
		if h.journal.Length() > maxJournalLength || g.frame.Size() > maxFrameSize || g.bulk != nil {
			err = s.checkpoint(h, g.mark, g.bulk...)
		} else {
			err = s.appendToJournal(h, g)
		}
	}
	if err != nil {
		h.broken.Store(true)
		return err
	}
	if g.movesRefs {
		s.mu.Lock()
		s.signalMoved()
		s.mu.Unlock()
	}
	return nil
}

// appendToJournal writes a group into the journal. If the sync fails the outcome is unknown.
func (s *store) appendToJournal(h *handle, g *group) error {
	wrote, err := h.journal.Append(g.frame)
	if err != nil {
		if err = s.explain("write", err); wrote {
			err = objects.Unknown(err)
		}
		return err
	}
	h.writeAnchor()
	s.mu.Lock()
	defer s.mu.Unlock()
	h.mark = g.mark
	return nil
}

// checkNotReplaced checks that the open files are those that the next program will open.
func (s *store) checkNotReplaced(h *handle) error {
	file, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	log, err := os.Stat(journalPath(s.path))
	if err != nil {
		return err
	}
	if !os.SameFile(file, h.fileInfo) || !os.SameFile(log, s.journalInfo) {
		return fmt.Errorf("write store %s: another file has taken its place: %w: try again", s.path, objects.ErrUnsafe)
	}
	return nil
}
