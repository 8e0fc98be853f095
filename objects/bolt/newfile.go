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
	"github.com/tract-vcs/tract/objects/bolt/internal/compaction"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// newFile is a store file that gc or backup writes, a [compaction.Target].
type newFile struct {
	path    string
	limit   int64 // see store.mapMost
	repack  bool  // packs are numbered anew, and large objects are compressed
	db      *bbolt.DB
	changes []journal.Change // of the next transaction
	bytes   int              // of these
	log     entryRun         // log entries of the next value
	packs   uint32           // the last pack
	entries uint64           // of the packs that are in no run of the index
	indexed uint32           // the last pack that is in one
	index   index.Runs
}

// How much is written in one transaction, and how many entries of the index are in memory.
const (
	writeBytes   = 4 << 20
	indexEntries = 1 << 19
	indexParts   = 16 // most often that all heads are read for the index
)

// create creates a file that is to get a path, and locks it until it is finished.
func (f *newFile) create(s *store, path string, bound journal.Binding) (err error) {
	f.limit = s.mapMost
	if f.path, err = build(dirOf(path), filepath.Base(path)+newSuffix+"*", bound); err != nil {
		return err
	}
	return protect(func() (err error) {
		f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{
			Timeout: time.Second, FreelistType: bbolt.FreelistArrayType, NoStatistics: true, NoSync: true, NoFreelistSync: false,
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
	return f.Write()
}

// AddPack is compaction.Target.
func (f *newFile) AddPack(p compaction.Pack) error {
	if f.repack {
		p = compaction.Pack{Number: f.packs + 1, Head: bytes.Clone(p.Head), Body: bytes.Clone(p.Body)}
		setSums(p)
	}
	if len(p.Head) >= packIDs {
		f.entries += uint64(parsePackHeader(p.Head).count)
	}
	f.packs = p.Number
	key := packKey(p.Number)
	return f.add(setKey(headsBucket, key, p.Head), setKey(bodiesBucket, key, p.Body))
}

// setSums sets the checksums of a pack, which cover its number.
func setSums(p compaction.Pack) {
	for _, value := range [][]byte{p.Head, p.Body} {
		binary.BigEndian.PutUint64(value, checksum.Sum(packKey(p.Number), value[8:]))
	}
}

// AddObjects is compaction.Target.
func (f *newFile) AddObjects(list []objects.Object) error {
	runs := splitPacks(inHistoryOrder(list), dense)
	packs := make([]compaction.Pack, len(runs))
	var wg sync.WaitGroup
	for i, run := range runs {
		wg.Go(func() { packs[i].Head, packs[i].Body = encodePack(0, run, codecZstd) })
	}
	wg.Wait()
	for _, p := range packs {
		if err := f.AddPack(p); err != nil {
			return err
		}
	}
	return nil
}

// SetRecord is compaction.Target.
func (f *newFile) SetRecord(r compaction.Record) error {
	if f.repack {
		r.Value = compressRecord(r.Value)
	}
	return f.add(setKey(objectsBucket, bytes.Clone(r.ID[:]), r.Value))
}

// DeleteRecord is compaction.Target.
func (f *newFile) DeleteRecord(id objects.ID) error {
	return f.add(deleteKey(objectsBucket, bytes.Clone(id[:])))
}

// AddEntry is compaction.Target.
func (f *newFile) AddEntry(e objects.LogEntry) error { return f.add(f.log.add(e)...) }

// SetRef is compaction.Target.
func (f *newFile) SetRef(name string, value []byte) error {
	old, err := f.get(refsBucket, []byte(name))
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
	if value == nil {
		return nil
	}
	r, err := decodeRef(name, value)
	if err != nil {
		return err
	}
	return f.add(setKey(refsBucket, []byte(name), value), setKey(recentBucket, recentKey(r.Ref), []byte{}))
}

// get returns the value of a key that was written, and not only added.
func (f *newFile) get(bucket int, key []byte) (value []byte, err error) {
	err = protect(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			value = bytes.Clone(tx.Bucket([]byte(buckets[bucket])).Get(key))
			return nil
		})
	})
	return value, err
}

// Write is compaction.Target.
func (f *newFile) Write() error {
	if len(f.changes) == 0 {
		return nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if err := checkMapSize(f.path, info.Size()+int64(f.bytes), f.limit); err != nil {
		return err
	}
	list := f.changes
	f.changes, f.bytes = nil, 0
	sortChanges(list)
	return protect(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error { return putChanges(tx, list, true) })
	})
}

// sync adds what is missing to the index, and makes everything durable.
func (f *newFile) sync() error {
	err := f.addRun()
	if err == nil {
		err = f.Write()
	}
	if err != nil {
		return err
	}
	return protect(f.db.Sync)
}

// finish adds what the file says about itself, makes it durable and closes it.
func (f *newFile) finish(meta ...journal.Change) error {
	err := f.add(f.log.flush()...)
	if err == nil {
		err = f.addRun()
	}
	if err == nil {
		err = f.add(append(meta, setKey(metaBucket, runsKey, encodeRuns(f.index)))...)
	}
	if err == nil {
		err = f.Write()
	}
	if err != nil {
		return err
	}
	db := f.db
	f.db = nil
	return protect(func() error { return errors.Join(db.Sync(), db.Close()) })
}

// addRun adds a run of the index for the packs that are in none. Its entries are sorted a
// part of the ids at a time: that bounds the memory.
func (f *newFile) addRun() error {
	if f.entries == 0 {
		return nil
	}
	if err := f.Write(); err != nil {
		return err
	}
	r := index.Run{Level: index.Level(int(f.entries)), Number: f.index.Last + 1, Entries: f.entries}
	parts := min(indexParts, f.entries/indexEntries+1)
	for i := range parts {
		entries, err := f.entriesBetween(i<<16/parts, (i+1)<<16/parts)
		if err != nil {
			return err
		}
		var chunks []journal.Change
		r.Encode(entries, func(key, value []byte) { chunks = append(chunks, setKey(indexBucket, key, value)) })
		if err := f.add(chunks...); err != nil {
			return err
		}
	}
	f.index = index.Runs{List: append(f.index.List, r), Last: r.Number}
	f.entries, f.indexed = 0, f.packs
	return nil
}

// entriesBetween returns the entries of packs in no run for ids whose first two bytes are
// from one number to below another.
func (f *newFile) entriesBetween(from, to uint64) (entries []index.Entry, err error) {
	err = protect(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(buckets[headsBucket])).Cursor()
			for key, head := c.Seek(packKey(f.indexed + 1)); key != nil; key, head = c.Next() {
				n := binary.BigEndian.Uint32(key)
				if len(head) < packIDs || parsePackHeader(head).end > len(head) {
					continue // a damaged pack of a copy
				}
				ids := head[packIDs:]
				for slot := range parsePackHeader(head).count {
					id := objects.ID(ids[slot*idSize:])
					if begin := uint64(binary.BigEndian.Uint16(id[:])); begin >= from && begin < to {
						entries = append(entries, newIndexEntry(id, place{n, slot}))
					}
				}
			}
			return nil
		})
	})
	return entries, err
}
