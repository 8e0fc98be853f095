package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// newFile is a store file that gc or backup writes.
type newFile struct {
	path    string
	limit   int64 // see store.mapMost
	db      *bbolt.DB
	changes []journal.Change // of the next transaction
	bytes   int              // of these
	packs   uint32           // the last pack
	entries uint64           // of the packs that are in no run of the index
	indexed uint32           // the last pack that is in one
	index   runs
}

// How much is written in one transaction, and how many entries of the index are in memory.
const (
	writeBytes   = 4 << 20
	indexEntries = 1 << 19
	indexParts   = 16 // most often that all heads are read for the index
)

// createBeside makes the file that is to take the place of the store's. While nobody has it
// locked, another process may remove it as a leftover: then it makes one more.
func (f *newFile) createBeside(path string, version uint64) (err error) {
	for range patience {
		if f.path, err = build(dirOf(path), filepath.Base(path)+newSuffix+"*", journal.Binding{Generation: 1}, version); err != nil {
			return err
		}
		if err = f.open(); err == nil {
			err = f.check()
		} else if !exists(f.path) {
			err = fs.ErrNotExist
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f.discard()
	}
	return err
}

// check reports as an error that the open file is not the one that was made, or has lost
// its name.
func (f *newFile) check() error {
	if _, err := os.Stat(f.path); err != nil {
		return err
	}
	return f.db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(buckets[metaBucket])) == nil {
			return fmt.Errorf("open %s: %w", f.path, fs.ErrNotExist)
		}
		return nil
	})
}

func (f *newFile) open() error {
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
	if f == nil || f.path == "" {
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

// addPack adds the next pack. The checksums are made for its number.
func (f *newFile) addPack(n uint32, head, body []byte) error {
	key := packKey(n)
	binary.BigEndian.PutUint64(head, checksum.Sum(key, head[8:]))
	binary.BigEndian.PutUint64(body, checksum.Sum(key, body[8:]))
	return f.addRawPack(rawPack{n, head, body})
}

// addRawPack adds the next pack as it is.
func (f *newFile) addRawPack(p rawPack) error {
	if len(p.head) >= packIDs {
		f.entries += uint64(parsePackHeader(p.head).count)
	}
	f.packs = p.n
	key := packKey(p.n)
	return f.add(setKey(headsBucket, key, p.head), setKey(bodiesBucket, key, p.body))
}

// write writes the changes that were added.
func (f *newFile) write() error {
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
		return f.db.Update(func(tx *bbolt.Tx) error {
			for _, one := range list {
				b := tx.Bucket([]byte(buckets[one.Bucket]))
				b.FillPercent = 1
				err := error(nil)
				if one.Value == nil {
					err = b.Delete(one.Key)
				} else {
					err = b.Put(one.Key, one.Value)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
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

// addRun adds a run of the index for the packs that are in none. Its entries are sorted a
// part of the ids at a time: that bounds the memory.
func (f *newFile) addRun(level uint64) error {
	if f.entries == 0 {
		return nil
	}
	if err := f.write(); err != nil {
		return err
	}
	r := run{level, f.index.last + 1, f.entries}
	parts := min(indexParts, f.entries/indexEntries+1)
	for i := range parts {
		entries, err := f.entriesBetween(i<<16/parts, (i+1)<<16/parts)
		if err != nil {
			return err
		}
		if err := f.add(encodeRun(r, entries)...); err != nil {
			return err
		}
	}
	f.index.list, f.index.last = append(f.index.list, r), r.number
	f.entries, f.indexed = 0, f.packs
	return nil
}

// entriesBetween returns the entries of packs in no run for ids whose first two bytes are
// from one number to below another.
func (f *newFile) entriesBetween(from, to uint64) (entries []indexEntry, err error) {
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

// sync makes durable what was added.
func (f *newFile) sync() error {
	if err := f.write(); err != nil {
		return err
	}
	return protect(f.db.Sync)
}

// finish adds what the file says about itself, makes it durable and closes it.
func (f *newFile) finish(meta ...journal.Change) error {
	err := f.add(append(meta, setKey(metaBucket, runsKey, f.index.encode()))...)
	if err == nil {
		err = f.write()
	}
	if err != nil {
		return err
	}
	db := f.db
	f.db = nil
	return protect(func() error { return errors.Join(db.Sync(), db.Close()) })
}

// encodeRun makes the chunks of a run.
func encodeRun(r run, entries []indexEntry) (list []journal.Change) {
	if r.level == denseRun {
		for i := range entries {
			clear(entries[i][densePrefix:indexPrefix])
		}
	}
	slices.SortFunc(entries, func(a, b indexEntry) int { return bytes.Compare(a[:], b[:]) })
	for len(entries) > 0 {
		var c journal.Change
		var n int
		if r.level == denseRun {
			c, n = encodeDense(r, entries)
		} else {
			for n = min(chunkEntries, len(entries)); n < len(entries) && bytes.Equal(entries[n][:indexPrefix], entries[n-1][:indexPrefix]); {
				n++ // those that begin alike stay together
			}
			key, value := encodeChunk(r, entries[:n])
			c = setKey(indexBucket, key, value)
		}
		list, entries = append(list, c), entries[n:]
	}
	return list
}

// packNumber returns the pack that a key names.
func packNumber(key []byte) (uint32, error) {
	if len(key) != 4 {
		return 0, errKey(headsBucket, key)
	}
	return binary.BigEndian.Uint32(key), nil
}

func errKey(bucket int, key []byte) error {
	return &objects.CorruptError{Cause: fmt.Errorf("%s: invalid key %x", buckets[bucket], slices.Clone(key))}
}
