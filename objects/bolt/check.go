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

// Audit is objects.Maintainer. It walks the pages itself, since bbolt stops at a damaged
// page: the audit continues with the next one.
func (s *store) Audit(ctx context.Context, to objects.Audit) (err error) {
	for range patience {
		err = s.withFileSnapshot(ctx, "check", to.Progress, func(h *fileSnapshot) error {
			if to.Begin != nil {
				if err := to.Begin(packedObjects(h)); err != nil {
					return err
				}
			}
			a := &checker{to: to, store: s, files: h, meta: h.meta}
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

// packedObjects returns how many objects in packs the index has, or 0 if that is unknown.
func packedObjects(h *fileSnapshot) (n int) {
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

// checker is one audit. Its methods return errors of reading and of the callbacks; damage
// is reported to a callback and is no error.
type checker struct {
	to    objects.Audit
	store *store
	files *fileSnapshot
	meta  page.Meta
	mem   *memtable.Table
	torn  bool // the last frame of the journal is incomplete

	pages     []pageState
	damaged   [len(buckets)]bool // a part of the bucket could not be read
	harmful   int                // damages that are not harmless
	heads     []foundHead
	bodies    map[uint32]extent
	large     []foundObject
	logLeaves []logLeaf
	logTail   []memtable.Entry // the values of the last leaves, which others rewrite
	checks    []pendingCheck   // running checks, the oldest first
	rooms     []*arena         // memory of finished checks
	nextLoose *looseCheck      // the next check of objects in no pack
	nextIndex *indexCheck      // the next check of chunks of the index
	index     indexState
	names     refState
	whole     map[uint32]bool       // packs whose objects are all intact
	broken    map[uint32]*fragments // parts of other packs, of a deep audit
}

func (a *checker) prepare() {
	a.bodies, a.broken, a.whole = map[uint32]extent{}, map[uint32]*fragments{}, map[uint32]bool{}
	a.names.refs, a.names.recent, a.names.states = map[string][]byte{}, map[string]bool{}, map[string]refRecord{}
	a.names.broken = map[string]bool{}
	a.index.entries, a.index.packs = map[uint32]*packTally{}, map[uint32]packTally{}
}

// pageState is the use of a page as far as it is known.
type pageState uint8

const (
	pageUnknown pageState = iota
	pageFree
	pageUsed
)

// extent is where a value is in the file, or the value itself if it is in an inline bucket.
type extent struct {
	at, size int64
	value    []byte
}

// report passes damage to the callback.
func (a *checker) report(d objects.Damage) error {
	if !d.Harmless {
		a.harmful++
	}
	if a.to.Damage == nil {
		return nil
	}
	return a.to.Damage(d)
}

func (a *checker) reportDamage(where string, what error, means string) error {
	return a.report(objects.Damage{Where: where, What: what.Error(), Means: means})
}

// reportHarmless reports damage by which nothing is lost.
func (a *checker) reportHarmless(where, what, means string) error {
	return a.report(objects.Damage{Where: where, What: what, Means: means, Harmless: true})
}

// isStop reports whether an error ends the audit. Other errors are damage, such as a sector
// that the disk cannot read.
func isStop(err error) bool { return errors.As(err, new(stopError)) }

func (a *checker) run() error {
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
	if err := a.checkJournalRecords(); err != nil {
		return err
	}
	if a.to.Deep && (a.harmful > 0 || a.torn || !readable) {
		if err := a.salvage(); err != nil {
			return err
		}
	}
	return a.checkRefs()
}

// file checks everything that can be reached from the meta page.
func (a *checker) file() error {
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
	if lost > 0 && a.harmful == 0 {
		return a.reportHarmless("free list", fmt.Sprintf("%d pages are neither in use nor free", lost), "they take room until the next tract gc --prune")
	}
	return nil
}

// metas chooses the meta page to use, and reports damage of either.
func (a *checker) metas() (readable bool, err error) {
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
	if err := a.reportDamage("meta pages", h.metaErr, means); err != nil || err1 != nil && err2 != nil {
		return false, err
	}
	pages := uint64(h.size) / uint64(a.meta.PageSize)
	if a.meta.HighWater > pages {
		a.meta.HighWater = pages // a reference to what is missing is reported later
	}
	return a.meta.HighWater > 2, nil
}

// binding reads the record that ties the journal to the file.
func (a *checker) binding() (bound journal.Binding, err error) {
	l := newSnapshot(a.files, a.meta)
	value, err := l.get(metaBucket, journalKey)
	if err == nil {
		bound, err = decodeBinding(value)
	}
	if err != nil && !isStop(err) {
		return journal.Binding{}, a.reportDamage("meta bucket", fmt.Errorf("journal: %w", err), "nobody knows which part of the journal is in the file already")
	}
	return bound, err
}

// journal reads the frames that count, and compares their end with the anchor.
func (a *checker) journal(bound journal.Binding) error {
	const where = "journal"
	h := a.files
	if h.journalErr != nil {
		a.markRefsDamaged()
		return a.reportDamage(where, h.journalErr, "what was committed since the file was last written is lost")
	}
	if err := journal.CheckHeader(h.journal, bound.Salt); err != nil {
		a.markRefsDamaged()
		if bound.Generation > 0 {
			return a.reportDamage(where, err, "the store is not opened; tract recover reads its frames nevertheless")
		}
		return nil
	}
	mem, position, err := replay(h.journal, bound)
	if a.mem = mem; err != nil {
		a.markRefsDamaged()
		return a.reportDamage(where, err, "what was committed from there on is lost")
	}
	end, err := a.acknowledged(bound)
	if err != nil {
		return err
	}
	if err := position.CheckTail(readerOf(h.journal), int64(len(h.journal)), end); err != nil {
		a.markRefsDamaged()
		return a.reportDamage(where, err, "commits that were acknowledged are lost, or damaged: tract recover saves those that are whole")
	}
	if a.torn = position.End != end && position.IsTorn(readerOf(h.journal)); a.torn {
		return a.reportHarmless(where, fmt.Sprintf("frame %d is not whole", position.Sequence+1), "a program was stopped while it wrote it, and had not said that it was done")
	}
	return nil
}

// markRefsDamaged notes that the newest changes of refs may be in what cannot be read.
func (a *checker) markRefsDamaged() {
	for _, name := range []int{refsBucket, recentBucket, logBucket, movesBucket} {
		a.damaged[name] = true
	}
}

// replay reads the frames of a journal that count.
func replay(b []byte, bound journal.Binding) (*memtable.Table, journal.Position, error) {
	mem := memtable.New(len(buckets))
	end, err := journal.Replay(readerOf(b), int64(len(b)), journal.StartOf(bound), len(buckets), mem.Add)
	return mem, end, err
}

// acknowledged returns the end of the acknowledged frames according to the anchor.
func (a *checker) acknowledged(bound journal.Binding) (end int64, err error) {
	anchor, ok, intact := journal.ReadAnchor(readerOf(a.files.anchor)) // a copied store may have none
	if !intact {
		err := a.reportHarmless("lock file", "the anchor in "+gatePath(a.store.path)+" is damaged",
			"nothing is lost; until the next write replaces it, a journal that was cut short is not noticed")
		if err != nil {
			return 0, err
		}
	}
	if !ok || anchor.Salt != bound.Salt || anchor.Generation < bound.Generation {
		return 0, nil
	}
	if anchor.Generation > bound.Generation {
		return 0, a.reportDamage("meta pages", fmt.Errorf("the file is older than what was acknowledged: its journal is of generation %d, and was of %d", bound.Generation, anchor.Generation),
			"somebody put an older file in the place of the store, or its disk lied: commits are lost; if it was you, remove "+gatePath(a.store.path))
	}
	return anchor.End, nil
}

// readerOf is bytes as an io.ReaderAt.
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
func (a *checker) freelist() error {
	const means = "the store is not written to; reading goes on, and tract recover makes a sound copy"
	ids, list, err := page.ReadFreelist(a.files, a.meta)
	if err != nil {
		if isStop(err) {
			return err
		}
		return a.reportDamage("free list", err, means)
	}
	for id := a.meta.Freelist; id <= list.Last; id++ {
		a.pages[id] = pageUsed
	}
	for ; len(ids) > 0; ids = ids[8:] {
		a.pages[page.Order.Uint64(ids)] = pageFree
	}
	return nil
}
