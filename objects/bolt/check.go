package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/check"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
	"github.com/tract-vcs/tract/objects/bolt/internal/salvage"
)

// Audit is objects.Maintainer. It has two parts. The first visits every page of a snapshot, and
// reads the refs, the index and the keys of everything else. The second reads what never changes,
// packs and log entries, a few at a time while others write.
func (s *store) Audit(ctx context.Context, to objects.Audit) error {
	return s.retryOnFileSnapshot(ctx, "check", to.Progress, func(h *fileSnapshot) error {
		if to.Begin != nil {
			if err := to.Begin(packedObjects(h)); err != nil {
				return err
			}
		}
		if err := newChecker(h, to).run(); err != nil {
			return err
		}
		if to.Progress != nil {
			to.Progress(h.size, h.size)
		}
		return nil
	})
}

// packedObjects returns how many objects in packs the index has, or 0 if that is unknown.
func packedObjects(h *fileSnapshot) (n int) {
	if r, err := newSnapshot(h, h.meta).runs(); err == nil {
		for _, one := range r.List {
			n += int(min(one.Entries, uint64(h.size)/uint64(idSize))) // none takes less
		}
	}
	return n
}

// checker is one audit. Damage is reported to a callback and is no error. The first error of reading
// or of a callback is kept in stop: nothing is reported or passed on after it, and loops end.
type checker struct {
	audit    objects.Audit
	snapshot *fileSnapshot
	stop     error
	mem      *memtable.Table
	torn     bool // the last frame of the journal is incomplete

	walker       check.Walker
	lastKeys     [len(buckets)][]byte // the last keys of the snapshot, where keys only ascend
	damaged      [len(buckets)]bool   // a part of the bucket could not be read
	harmfulCount int                  // damages that are not harmless
	reported     map[objects.Damage]bool
	index        indexCheck
	refs         refCheck
	bodies       map[uint32]bool // packs with a body
	intact       map[uint32]bool // packs with a head, and whether all of their objects are intact
	valueArena   arena           // for values that were read together
	packArena    arena           // for the pack that is checked

	fragments map[uint32][]salvage.Element // by pack: values of it that salvage has found
}

func newChecker(h *fileSnapshot, to objects.Audit) *checker {
	return &checker{
		audit: to, snapshot: h, walker: check.Walker{File: h},
		reported: map[objects.Damage]bool{}, bodies: map[uint32]bool{}, intact: map[uint32]bool{}, fragments: map[uint32][]salvage.Element{},
		index: newIndexCheck(), refs: newRefCheck(),
	}
}

// report passes damage to the callback, once.
func (a *checker) report(d objects.Damage) {
	if a.stop != nil || a.reported[d] {
		return
	}
	a.reported[d] = true
	if !d.Harmless {
		a.harmfulCount++
	}
	if a.audit.Damage != nil {
		a.stop = a.audit.Damage(d)
	}
}

func (a *checker) reportDamage(where string, err error, means string) {
	a.report(objects.Damage{Where: where, What: err.Error(), Means: means})
}

// reportHarmless reports damage by which nothing is lost.
func (a *checker) reportHarmless(where, what, means string) {
	a.report(objects.Damage{Where: where, What: what, Means: means, Harmless: true})
}

// reportPage reports damage in a page of a bucket.
func (a *checker) reportPage(bucket int, id uint64, err error) {
	if a.stopIfInterrupted(err) {
		return
	}
	a.damaged[bucket] = true
	a.reportDamage(fmt.Sprintf("page %d (%s)", id, buckets[bucket]), err, meanings[bucket])
}

// reportObject reports an object that does not match its id.
func (a *checker) reportObject(where string, id objects.ID, err error) {
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
		err = c.Cause
	}
	a.report(objects.Damage{ID: id, Where: where, What: err.Error()})
}

// stopIfInterrupted ends the audit if an error is a stopError. Any other error is damage, which the caller reports.
func (a *checker) stopIfInterrupted(err error) (stopped bool) {
	if !errors.As(err, new(stopError)) {
		return false
	}
	a.stop = cmp.Or(a.stop, err)
	return true
}

// meanings says what the loss of a page of a bucket means to a user.
var meanings = [len(buckets)]string{
	metaBucket:    "the store is not opened; tract recover saves what is there",
	objectsBucket: "tombstones on it are lost: purged objects count as missing",
	refsBucket:    "branches and tags on it are lost; the ref log knows most of them, and tract recover asks it",
	recentBucket:  "nothing is lost: it is the order of refs by time; tract recover makes it anew",
	logBucket:     "moves of refs on it are lost, no commits",
	movesBucket:   "nothing is lost: it is the ref log by name; tract recover makes it anew",
	headsBucket:   "the commits of the packs on it are lost",
	bodiesBucket:  "the content of the packs on it is lost",
	indexBucket:   "nothing is lost: it says where objects lie; tract recover makes it anew",
}

func (a *checker) run() error {
	return a.runSteps(a.reportMetaDamage, a.checkJournal, a.checkFile, a.checkJournalChanges, a.salvage, a.checkRefs)
}

// runSteps calls functions until the audit ends.
func (a *checker) runSteps(list ...func()) error {
	for i := 0; i < len(list) && a.stop == nil; i++ {
		list[i]()
	}
	return a.stop
}

// reportMetaDamage reports damage of the meta pages, and of the record that binds the journal to the file.
func (a *checker) reportMetaDamage() {
	h := a.snapshot
	if h.metaErr != nil {
		a.reportDamage("meta pages", h.metaErr, "the store is not opened, since the last transaction may be lost; tract recover saves what is there")
	}
	if h.boundErr == nil {
		return
	}
	a.reportDamage("meta bucket", fmt.Errorf("journal: %w", h.boundErr), "it is unknown which part of the journal is in the file already")
}

// checkJournal reads the frames that count, and compares their end with the anchor.
func (a *checker) checkJournal() {
	unread := func() {
		for _, n := range []int{refsBucket, recentBucket, logBucket, movesBucket} {
			a.damaged[n] = true // their newest changes may be in what cannot be read
		}
	}
	damaged := func(err error, means string) {
		unread()
		a.reportDamage("journal", err, means)
	}
	h := a.snapshot
	if h.metaErr != nil && h.bound.Generation == 0 { // it is reported that the file does not say which frames count
		unread()
		return
	}
	if h.journalErr != nil {
		damaged(h.journalErr, "what was committed since the file was last written is lost")
		return
	}
	err := journal.CheckHeader(h.journal, h.bound.Salt)
	if h.bound.Generation == 0 {
		err = errors.New("it is unknown which of its frames count")
	}
	if err != nil {
		damaged(err, "the store is not opened; tract recover reads its frames nevertheless")
		return
	}
	mem, position, err := replay(h.journal, h.bound)
	if a.mem = mem; err != nil {
		damaged(err, "what was committed from there on is lost")
		return
	}
	end := a.checkAnchor()
	r := bytes.NewReader(h.journal)
	if err = position.CheckTail(r, r.Size(), end); err != nil {
		damaged(err, "commits that were acknowledged are lost, or damaged: tract recover saves those that are whole")
		return
	}
	if a.torn = position.End != end && position.IsTorn(r); a.torn {
		a.reportHarmless("journal", fmt.Sprintf("frame %d is incomplete", position.Sequence+1), "a program was stopped while it wrote the frame, and had not acknowledged it")
	}
}

// replay reads the frames of a journal that count.
func replay(file []byte, bound journal.Binding) (mem *memtable.Table, end journal.Position, err error) {
	mem = memtable.New(len(buckets))
	end, err = journal.Replay(bytes.NewReader(file), int64(len(file)), journal.StartOf(bound), len(buckets), mem.Add)
	return mem, end, err
}

// checkAnchor reports what is wrong with the anchor, and returns the end of the frames that it says
// were acknowledged.
func (a *checker) checkAnchor() (acknowledgedEnd int64) {
	path := gatePath(a.snapshot.store.path)
	acknowledgedEnd, intact, older := a.snapshot.bound.Acknowledged(bytes.NewReader(a.snapshot.anchor)) // a copied store may have no anchor
	if !intact {
		a.reportHarmless("lock file", "the anchor in "+path+" is damaged",
			"nothing is lost; until the next write replaces it, a journal that was cut short is not noticed")
	}
	if older != nil {
		a.reportDamage("meta pages", older, "somebody put an older file in the place of the store, or its disk lied: commits are lost; if it was you, remove "+path)
	}
	return acknowledgedEnd
}

// checkFile checks everything that can be reached from the meta page: first all pages, then, in views,
// what never changes.
func (a *checker) checkFile() {
	if !a.snapshot.readable {
		return
	}
	a.checkPages()
	if a.stop == nil {
		a.stop = a.snapshot.switchToViews()
	}
	a.checkPacksAndLog()
}

// checkPages checks the free list and every page, and what the pages have of everything but packs and log
// entries.
func (a *checker) checkPages() {
	a.walker.Reset(a.snapshot.meta)
	if err := a.walker.ReadFreelist(); err != nil && !a.stopIfInterrupted(err) {
		a.reportDamage("free list", err, "the store is not written to; reading goes on, and tract recover makes a sound copy")
	}
	trees := a.trees()
	for n, name := range buckets {
		if t, ok := trees[name]; ok {
			a.walk(n, t, nil, func(e page.Entry) error { return a.checkEntry(n, e) })
			continue
		}
		a.damaged[n] = true
		a.reportDamage(fmt.Sprintf("bucket %q", name), errors.New("it is not there"), meanings[n])
	}
	if lost := a.walker.Lost(); lost > 0 && a.harmfulCount == 0 {
		a.reportHarmless("free list", fmt.Sprintf("%d pages are neither in use nor free", lost), "they take room until the next tract gc --prune")
	}
}

// checkPacksAndLog hashes the objects of all packs, compares the index with the packs, and checks the log.
func (a *checker) checkPacksAndLog() {
	_ = a.runSteps(
		func() { a.forEach(headsBucket, a.checkPack) },
		a.reportBodiesWithoutHead,
		a.checkIndex,
		func() { a.forEach(logBucket, func(v value) { a.checkLogValue(v.key, v.data) }) },
	)
}

// checkNewFile checks a file that nobody else uses and that has so many objects. Damage is an error.
func checkNewFile(path string, wantObjects int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	m, err := readMeta(f)
	if err != nil {
		return err
	}
	n := 0
	h := &fileSnapshot{store: &store{path: path}, ctx: context.Background(), file: f, meta: m, readable: true, exclusive: true}
	a := newChecker(h, objects.Audit{
		Objects: func(list []objects.Object) error { n += len(list); return nil },
		Damage:  func(d objects.Damage) error { return fmt.Errorf("%s of the new file: %s", d.Where, d.What) },
	})
	if a.checkFile(); a.stop == nil && n != wantObjects {
		return fmt.Errorf("the new file has %d objects of %d", n, wantObjects)
	}
	return a.stop
}

// walk calls visit with the entries of a bucket from a key on, and reports damaged pages. An error of
// visit that is not errPause ends the audit.
func (a *checker) walk(bucket int, t page.Tree, from []byte, visit func(e page.Entry) error) {
	if a.stop != nil {
		return
	}
	err := a.walker.Walk(t, from, func(id uint64, err error) error {
		a.reportPage(bucket, id, err)
		return a.stop
	}, visit)
	if !errors.Is(err, errPause) {
		a.stop = cmp.Or(a.stop, err)
	}
}

// trees returns the trees of the buckets that can be read, by name.
func (a *checker) trees() map[string]page.Tree {
	found := map[string]page.Tree{}
	a.walk(metaBucket, page.Tree{Root: a.walker.Meta.Root}, nil, func(e page.Entry) error {
		b, err := e.Raw(nil)
		switch name := string(e.Key); {
		case err != nil:
		case e.Flags != page.BucketFlag:
			err = errors.New("its record is no bucket")
		case !slices.Contains(buckets[:], name):
			err = errors.New("no bucket of a store")
		default:
			var t page.Tree
			if t, err = page.ParseTree(b); err == nil {
				found[name] = t
			}
		}
		if err != nil && !a.stopIfInterrupted(err) {
			a.reportDamage(fmt.Sprintf("bucket %q", e.Key), err, meanings[metaBucket])
		}
		return a.stop
	})
	return found
}

// checkEntry checks an entry of the snapshot, except for the values that are read later, and reports what is
// wrong. It returns the error that ends the audit.
func (a *checker) checkEntry(bucket int, e page.Entry) (stop error) {
	var err error
	switch {
	case e.Flags != 0:
		err = fmt.Errorf("key %x: a bucket in the place of a value", e.Key)
	case bucket == bodiesBucket:
		var n uint32
		if n, err = packNumber(e.Key); err == nil {
			a.bodies[n] = true
		}
	case bucket == headsBucket || bucket == logBucket:
		if bytes.Compare(e.Key, a.lastKeys[bucket]) > 0 {
			a.lastKeys[bucket] = e.Key
		}
	default:
		err = a.checkValue(bucket, e)
	}
	if err != nil {
		a.reportPage(bucket, e.Page().ID, err)
	}
	return a.stop
}

// checkValue checks an entry with its value.
func (a *checker) checkValue(bucket int, e page.Entry) error {
	a.valueArena.reset()
	value, err := e.ValueIn(a.valueArena.pageArena())
	if err != nil {
		return err
	}
	switch bucket {
	case objectsBucket:
		if !isTombstone(value) {
			return fmt.Errorf("key %x: no tombstone", e.Key)
		}
		a.checkObject("bucket "+buckets[objectsBucket], e.Key, value)
	case metaBucket:
		return a.checkMetaRecord(e.Key, value)
	case indexBucket:
		return a.index.addChunk(e.Key, value)
	default:
		a.applyRefChange(bucket, e.Key, value)
	}
	return nil
}
