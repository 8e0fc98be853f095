package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// Audit is objects.Maintainer. It walks over the pages by itself, as bbolt would not:
// where one is damaged it goes on with the next.
func (s *store) Audit(ctx context.Context, to objects.Audit) (err error) {
	for range patience {
		err = s.steadily(ctx, "check", to.Progress, func(h *steady) error {
			if to.Begin != nil {
				if err := to.Begin(packedObjects(h)); err != nil {
					return err
				}
			}
			a := &auditor{to: to, store: s, files: h, meta: h.meta}
			a.prepare()
			if err := a.run(); err != nil {
				return err
			}
			if to.Progress != nil {
				to.Progress(h.size, h.size)
			}
			return nil
		})
		if !errors.Is(err, errRewritten) {
			return err
		}
	}
	return fmt.Errorf("check store %s: %w: %w: try again", s.path, errRewritten, objects.ErrBusy)
}

// packedObjects is how many objects the index says there are in packs; 0: it is not known.
func packedObjects(h *steady) (n int) {
	if h.metaErr != nil {
		return 0
	}
	r, err := newSnapshot(h, h.meta).runs()
	if err != nil {
		return 0
	}
	most := uint64(h.size) / uint64(idSize) // none takes less
	for _, one := range r.list {
		n += int(min(one.entries, most))
	}
	return min(n, int(most))
}

// auditor is one audit. Its methods give the errors of reading and of the one who
// listens; damage is told and is no error.
type auditor struct {
	to    objects.Audit
	store *store
	files *steady
	meta  page.Meta
	mem   *memtable.Table
	torn  bool // the last frame of the journal is not whole

	pages     []pageState
	hurt      [len(buckets)]bool // something of the bucket could not be read
	harm      int                // what was told that is not harmless
	heads     []foundHead
	bodies    map[uint32]extent
	large     []foundObject
	logLeaves []logLeaf
	logTail   []memtable.Entry // the values of the last leaves, which others rewrite
	checks    []pendingCheck   // what is looked at, the oldest first
	rooms     []*arena         // of those that were
	gathering *looseCheck      // the next
	indexing  *indexCheck      // as well
	index     indexAudit
	names     nameAudit
	whole     map[uint32]bool    // packs of which every object was found
	broken    map[uint32]*scraps // packs that are not whole, of a deep audit
}

func (a *auditor) prepare() {
	a.bodies, a.broken, a.whole = map[uint32]extent{}, map[uint32]*scraps{}, map[uint32]bool{}
	a.names.refs, a.names.recent, a.names.states = map[string][]byte{}, map[string]bool{}, map[string]refRecord{}
	a.names.broken = map[string]bool{}
	a.index.entries, a.index.packs = map[uint32]*packTally{}, map[uint32]packTally{}
}

// pageState is what a page is known to be.
type pageState uint8

const (
	pageUnknown pageState = iota
	pageFree
	pageUsed
)

// extent is where a value lies in the file, or the value itself when it is in the
// page of an inline bucket.
type extent struct {
	at, size int64
	value    []byte
}

// tell passes on a damage.
func (a *auditor) tell(d objects.Damage) error {
	if !d.Harmless {
		a.harm++
	}
	if a.to.Damage == nil {
		return nil
	}
	return a.to.Damage(d)
}

func (a *auditor) damage(where string, what error, means string) error {
	return a.tell(objects.Damage{Where: where, What: what.Error(), Means: means})
}

// blemish is damage that costs nothing.
func (a *auditor) blemish(where, what, means string) error {
	return a.tell(objects.Damage{Where: where, What: what, Means: means, Harmless: true})
}

// foreign tells the end of an audit from damage. A sector that the disk cannot read
// is damage.
func foreign(err error) bool { return errors.As(err, new(stopError)) }

func (a *auditor) run() error {
	readable, err := a.metas()
	if err != nil {
		return err
	}
	bound := journal.Binding{}
	if readable {
		if bound, err = a.binding(); err != nil {
			return err
		}
	}
	if err := a.journal(bound); err != nil {
		return err
	}
	if readable {
		if err := a.file(); err != nil {
			return err
		}
	}
	if err := a.recorded(); err != nil {
		return err
	}
	if a.to.Deep && (a.harm > 0 || a.torn || !readable) {
		if err := a.salvage(); err != nil {
			return err
		}
	}
	return a.settleNames()
}

// file walks over everything that the meta page leads to.
func (a *auditor) file() error {
	a.pages = make([]pageState, a.meta.HighWater)
	if err := a.freelist(); err != nil {
		return err
	}
	if err := a.trees(); err != nil {
		return err
	}
	if err := a.readLogTail(); err != nil {
		return err
	}
	if !a.to.Deep {
		if err := a.files.detach(); err != nil {
			return err
		}
	}
	if err := a.values(); err != nil {
		return err
	}
	lost := 0
	for id := uint64(2); id < a.meta.HighWater; id++ {
		if a.pages[id] == pageUnknown {
			lost++
		}
	}
	if lost > 0 && a.harm == 0 {
		return a.blemish("free list", fmt.Sprintf("%d pages are neither in use nor free", lost), "they take room until the next tract gc --prune")
	}
	return nil
}

// metas finds the meta page to go by, and tells what is wrong with either.
func (a *auditor) metas() (readable bool, err error) {
	h := a.files
	if h.metaErr == nil {
		return true, nil
	}
	first, err1 := page.ReadMetaAt(h.file, 0)
	second, err2 := page.Meta{}, errors.New("nobody knows where it is")
	if err1 == nil {
		second, err2 = page.ReadMetaAt(h.file, int64(first.PageSize))
	} else {
		for size := int64(page.MinSize); size <= 64<<10 && err2 != nil; size *= 2 {
			second, err2 = page.ReadMetaAt(h.file, size)
		}
	}
	a.meta = first
	if err1 != nil || err2 == nil && second.Tx > first.Tx {
		a.meta = second
	}
	means := "the store is not opened, since the newest commits may be in what cannot be read; tract recover saves what is there"
	if err1 == nil || err2 == nil {
		means = "the last transaction may be lost: the store is not opened; tract recover saves what is there"
	}
	if err := a.damage("meta pages", h.metaErr, means); err != nil || err1 != nil && err2 != nil {
		return false, err
	}
	pages := uint64(h.size) / uint64(a.meta.PageSize)
	if a.meta.HighWater > pages {
		a.meta.HighWater = pages // what is cut off shows where something leads there
	}
	return a.meta.HighWater > 2, nil
}

// binding reads what the file says of its journal.
func (a *auditor) binding() (bound journal.Binding, err error) {
	l := newSnapshot(a.files, a.meta)
	value, err := l.get(metaBucket, journalKey)
	if err == nil {
		bound, err = decodeBinding(value)
	}
	if err != nil && !foreign(err) {
		return journal.Binding{}, a.damage("meta bucket", fmt.Errorf("journal: %w", err), "nobody knows which part of the journal is in the file already")
	}
	return bound, err
}

// journal reads the frames that count, and holds them to what was acknowledged.
func (a *auditor) journal(bound journal.Binding) error {
	const where = "journal"
	h := a.files
	if h.journalErr != nil {
		a.hurtNames()
		return a.damage(where, h.journalErr, "what was committed since the file was last written is lost")
	}
	if err := journal.CheckHeader(h.journal, bound.Salt); err != nil {
		a.hurtNames()
		if bound.Generation > 0 {
			return a.damage(where, err, "the store is not opened; tract recover reads its frames nevertheless")
		}
		return nil
	}
	mem, position, err := replay(h.journal, bound)
	if a.mem = mem; err != nil {
		a.hurtNames()
		return a.damage(where, err, "what was committed from there on is lost")
	}
	end, err := a.acknowledged(bound)
	if err != nil {
		return err
	}
	if err := position.CheckTail(readerOf(h.journal), int64(len(h.journal)), end); err != nil {
		a.hurtNames()
		return a.damage(where, err, "commits that were acknowledged are lost, or damaged: tract recover saves those that are whole")
	}
	if a.torn = position.End != end && position.IsTorn(readerOf(h.journal)); a.torn {
		return a.blemish(where, fmt.Sprintf("frame %d is not whole", position.Sequence+1), "a program was stopped while it wrote it, and had not said that it was done")
	}
	return nil
}

// hurtNames notes that the newest moves of refs may be what cannot be read.
func (a *auditor) hurtNames() {
	for _, name := range []int{refsBucket, recentBucket, logBucket, movesBucket} {
		a.hurt[name] = true
	}
}

// replay reads the frames of a journal that count.
func replay(b []byte, bound journal.Binding) (*memtable.Table, journal.Position, error) {
	mem := memtable.New(len(buckets))
	end, err := journal.Replay(readerOf(b), int64(len(b)), journal.StartOf(bound), len(buckets), mem.Add)
	return mem, end, err
}

// acknowledged is the end of what was acknowledged, as the anchor says.
func (a *auditor) acknowledged(bound journal.Binding) (end int64, err error) {
	anchor, ok, intact := journal.ReadAnchor(readerOf(a.files.anchor)) // a store that was copied has none
	if !intact {
		err := a.blemish("lock file", "the anchor in "+gatePath(a.store.path)+" is damaged",
			"nothing is lost; until the next write replaces it, a journal that was cut short is not noticed")
		if err != nil {
			return 0, err
		}
	}
	if !ok || anchor.Salt != bound.Salt || anchor.Generation < bound.Generation {
		return 0, nil
	}
	if anchor.Generation > bound.Generation {
		return 0, a.damage("meta pages", fmt.Errorf("the file is older than what was acknowledged: its journal is of generation %d, and was of %d", bound.Generation, anchor.Generation),
			"somebody put an older file in the place of the store, or its disk lied: commits are lost; if it was you, remove "+gatePath(a.store.path))
	}
	return anchor.End, nil
}

// readerOf reads bytes as a file.
type readerOf []byte

func (b readerOf) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// freelist notes which pages are free.
func (a *auditor) freelist() error {
	const means = "the store is not written to; reading goes on, and tract recover makes a sound copy"
	ids, list, err := page.ReadFreelist(a.files, a.meta)
	if err != nil {
		if foreign(err) {
			return err
		}
		return a.damage("free list", err, means)
	}
	for id := a.meta.Freelist; id <= list.Last; id++ {
		a.pages[id] = pageUsed
	}
	for ; len(ids) > 0; ids = ids[8:] {
		a.pages[page.Order.Uint64(ids)] = pageFree
	}
	return nil
}
