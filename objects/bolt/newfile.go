package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// newFile is a store file that gc or backup writes.
type newFile struct {
	path             string
	maxMapSize       int64 // see store.maxMapSize
	repack           bool  // packs are numbered anew
	db               *bbolt.DB
	file             *os.File         // that of db
	written          *snapshot        // what was written, without the changes; nil: to be opened
	changes          []journal.Change // of the next transaction
	bytes            int              // of these
	log              logValueBuilder  // log entries of the next value
	lastPack         uint32           // the last pack
	unindexedEntries uint64           // of the packs that are in no run of the index
	lastIndexedPack  uint32           // the last pack that is in one
	runs             index.Runs
}

// How much is written in one transaction, each of which reads pages of all trees through the map of
// bbolt, where they stay in memory; and how many entries of the index are in memory.
const (
	writeBytes   = 32 << 20
	indexEntries = 1 << 19
	indexParts   = 16 // most often that all heads are read for the index
)

// create creates a file that is to get a path, and locks it until it is finished.
func (f *newFile) create(s *store, path string, bound journal.Binding) (err error) {
	f.maxMapSize = s.maxMapSize
	if f.path, err = createEmptyFile(filepath.Dir(path), filepath.Base(path)+newSuffix+"*", bound); err != nil {
		return err
	}
	return protect(func() (err error) {
		f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{
			Timeout: time.Second, FreelistType: bbolt.FreelistArrayType, NoStatistics: true, NoSync: true, NoFreelistSync: false,
			OpenFile: func(name string, flag int, perm os.FileMode) (_ *os.File, err error) {
				f.file, err = os.OpenFile(name, flag, perm)
				return f.file, err
			},
		})
		if err == nil {
			f.db.AllocSize = 0
		}
		return err
	})
}

// discard removes the file unless it has another name by now.
func (f *newFile) discard() {
	if f.path == "" {
		return
	}
	if f.db != nil {
		_ = protect(f.db.Close)
		f.db = nil
	}
	_ = os.Remove(f.path)
}

// add adds changes to the next transaction, which is written when they are many.
func (f *newFile) add(list ...journal.Change) error {
	for _, one := range list {
		f.changes, f.bytes = append(f.changes, one), f.bytes+len(one.Key)+len(one.Value)
	}
	if f.bytes < writeBytes {
		return nil
	}
	return f.write()
}

// addPack adds a pack as it is; for gc under the next number.
func (f *newFile) addPack(p rawPack) error {
	if f.repack {
		p = rawPack{f.lastPack + 1, bytes.Clone(p.head), bytes.Clone(p.body)}
		p.setSums()
	}
	if len(p.head) >= packIDs {
		f.unindexedEntries += uint64(parsePackHeader(p.head).count)
	}
	f.lastPack = p.n
	key := packKey(p.n)
	return f.add(setKey(headsBucket, key, p.head), setKey(bodiesBucket, key, p.body))
}

// setSums sets the checksums of a pack, which cover its number.
func (p rawPack) setSums() {
	for _, value := range [][]byte{p.head, p.body} {
		binary.BigEndian.PutUint64(value, checksum.Sum(packKey(p.n), value[8:]))
	}
}

// addObjects adds objects in new packs.
func (f *newFile) addObjects(list []objects.Object) error {
	runs := splitPacks(inHistoryOrder(list), denseLimits)
	packs := make([]rawPack, len(runs))
	var wg sync.WaitGroup
	for i, run := range runs {
		wg.Go(func() { packs[i].head, packs[i].body = encodePack(0, run, codecZstd) })
	}
	wg.Wait()
	for _, p := range packs {
		if err := f.addPack(p); err != nil {
			return err
		}
	}
	return nil
}

// setOrDeleteRef sets a ref, perhaps again, or deletes it if recordOrNil is nil.
func (f *newFile) setOrDeleteRef(name string, recordOrNil []byte) error {
	l, err := f.snapshotOfWritten()
	if err != nil {
		return err
	}
	old, err := l.get(refsBucket, []byte(name))
	if err != nil {
		return err
	}
	if old != nil {
		r, err := decodeRef(name, old)
		if err != nil {
			return err
		}
		if err := f.add(deleteKey(recentBucket, recentKey(r.Ref)), deleteKey(refsBucket, []byte(name))); err != nil {
			return err
		}
	}
	if recordOrNil == nil {
		return nil
	}
	r, err := decodeRef(name, recordOrNil)
	if err != nil {
		return err
	}
	return f.add(setKey(refsBucket, []byte(name), recordOrNil), setKey(recentBucket, recentKey(r.Ref), []byte{}))
}

// snapshotOfWritten returns what was written, and not only added. It reads the file, since every page that
// is read in the memory map of bbolt would stay in memory.
func (f *newFile) snapshotOfWritten() (*snapshot, error) {
	if f.written == nil {
		m, err := readMeta(f.file)
		if err != nil {
			return nil, err
		}
		f.written = newSnapshot(f.file, m)
	}
	return f.written, nil
}

// write writes what was added so far.
func (f *newFile) write() error {
	if len(f.changes) == 0 {
		return nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if err := checkMapSize(f.path, info.Size()+int64(f.bytes), f.maxMapSize); err != nil {
		return err
	}
	list := f.changes
	f.changes, f.bytes, f.written = nil, 0, nil
	sortChanges(list)
	return protect(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error { return putChanges(tx, list, true) })
	})
}

// indexAndSync adds what is missing to the index, and makes everything durable.
func (f *newFile) indexAndSync() error {
	return runInOrder(f.indexNewPacks, f.write, func() error { return protect(f.db.Sync) })
}

// finish adds what the file says about itself, makes it durable and closes it.
func (f *newFile) finish(meta ...journal.Change) error {
	return runInOrder(
		f.indexNewPacks,
		func() error { return f.add(append(meta, setKey(metaBucket, runsKey, encodeRuns(f.runs)))...) },
		f.write,
		func() error {
			db := f.db
			f.db = nil
			return protect(func() error { return errors.Join(db.Sync(), db.Close()) })
		})
}

// indexNewPacks adds a run of the index for the packs that are in none. Its entries are sorted a
// part of the ids at a time: that bounds the memory.
func (f *newFile) indexNewPacks() error {
	if f.unindexedEntries == 0 {
		return nil
	}
	if err := f.write(); err != nil {
		return err
	}
	r := index.Run{Level: index.Level(int(f.unindexedEntries)), Number: f.runs.Last + 1, Entries: f.unindexedEntries}
	parts := min(indexParts, f.unindexedEntries/indexEntries+1)
	for i := range parts {
		entries, err := f.entriesToIndex(i<<16/parts, (i+1)<<16/parts)
		if err != nil {
			return err
		}
		var chunks []journal.Change
		r.Encode(entries, func(key, value []byte) { chunks = append(chunks, setKey(indexBucket, key, value)) })
		if err := f.add(chunks...); err != nil {
			return err
		}
	}
	f.runs = index.Runs{List: append(f.runs.List, r), Last: r.Number}
	f.unindexedEntries, f.lastIndexedPack = 0, f.lastPack
	return nil
}

// entriesToIndex returns the entries of packs that are in no run, for ids whose first two bytes are a number
// from minPrefix to below endPrefix.
func (f *newFile) entriesToIndex(minPrefix, endPrefix uint64) (entries []index.Entry, err error) {
	l, err := f.snapshotOfWritten()
	if err != nil {
		return nil, err
	}
	var arena page.Arena
	for e, err := range l.ascend(headsBucket, packKey(f.lastIndexedPack+1)) {
		var head []byte
		if err == nil {
			arena.Reset()
			head, err = e.ValueIn(&arena)
		}
		if err != nil {
			return nil, err
		}
		if len(head) < packIDs || parsePackHeader(head).end > len(head) {
			continue // a damaged pack of a copy
		}
		n, ids := binary.BigEndian.Uint32(e.Key), head[packIDs:]
		for row := range parsePackHeader(head).count {
			id := objects.ID(ids[row*idSize:])
			if prefix := uint64(binary.BigEndian.Uint16(id[:])); prefix >= minPrefix && prefix < endPrefix {
				entries = append(entries, newIndexEntry(id, place{n, row}))
			}
		}
	}
	return entries, nil
}
