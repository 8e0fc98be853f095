package bolt

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

var runsKey = []byte("runs")

func encodeRuns(r index.Runs) []byte { return encodeRecord(runsKey, r.Fields) }

func decodeRuns(value []byte) (r index.Runs, err error) {
	err = decodeRecord(runsKey, value, r.Fields)
	return r, err
}

// place is a row of a pack.
type place struct {
	pack uint32
	row  int
}

func placeOf(e index.Entry) place { return place{e.Pack, int(e.Row)} }

func newIndexEntry(id objects.ID, at place) index.Entry {
	return index.Entry{Prefix: index.Prefix(id[:]), Pack: at.pack, Row: uint16(at.row)}
}

// runs reads the list of runs.
func (l *snapshot) runs() (index.Runs, error) {
	if l.index != nil {
		return *l.index, nil
	}
	value, err := l.get(metaBucket, runsKey)
	if err != nil {
		return index.Runs{}, err
	}
	r, err := decodeRuns(value)
	if err != nil {
		return index.Runs{}, fmt.Errorf("index: %w", err)
	}
	l.index = &r
	return r, nil
}

// decodeChunk checks a chunk of the index and appends its entries to a list.
func decodeChunk(list []index.Entry, key, value []byte) ([]index.Entry, error) {
	entries, err := index.Decode(list, key, value)
	if err != nil {
		err = fmt.Errorf("index: %w", err)
	}
	return entries, err
}

// readChunkReuse reads a chunk, of whichever run, into the memory of the one before: the entries are
// valid until the next call.
func (l *snapshot) readChunkReuse(e page.Entry) ([]index.Entry, error) {
	l.chunk.entries = l.chunk.entries[:0]
	value, err := e.Value()
	if err != nil {
		return nil, err
	}
	entries, err := decodeChunk(l.chunk.entries, e.Key, value)
	if err != nil {
		return nil, err
	}
	l.chunk.entries = entries
	l.chunk.run, err = index.ParseKey(e.Key)
	return entries, err
}

// chunksFrom yields the chunks of a run, from the one in which a prefix may come first. It checks the
// chunks before and after them, which may be of other runs: their keys may be damaged. Each chunk is
// valid until the next one is read.
func (l *snapshot) chunksFrom(r index.Run, prefix uint32) iter.Seq2[[]index.Entry, error] {
	return func(yield func([]index.Entry, error) bool) {
		var first page.Entry
		var entries []index.Entry
		ok := false
		t, err := l.bucket(indexBucket)
		if err == nil {
			first, ok, err = l.pages.Floor(t, r.ChunkKey(prefix))
		}
		if ok && err == nil {
			entries, err = l.readChunkReuse(first)
		}
		start := r.Key()
		if err != nil || r.Has(first.Key) {
			if !yield(entries, err) || err != nil {
				return
			}
			start = append(slices.Clone(first.Key), 0) // the key after it
		}
		for e, err := range l.pages.Scan(t, start, false) {
			if err == nil {
				entries, err = l.readChunkReuse(e)
			}
			if err == nil && !r.Has(e.Key) || !yield(entries, err) || err != nil {
				return
			}
		}
	}
}

// locate finds the place of an object in the packs.
func (l *snapshot) locate(id objects.ID) (place, bool, error) {
	for at, err := range l.places(id) {
		return at, err == nil, err
	}
	return place{}, false, nil
}

// places yields the places of an object in packs, the newest first: it replaces a damaged one. An error
// is the last element.
func (l *snapshot) places(id objects.ID) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		all, err := l.runs()
		if err != nil {
			yield(place{}, err)
			return
		}
		for _, r := range slices.Backward(all.List) {
			entries, err := l.entriesOf(r, id)
			if err != nil {
				yield(place{}, err)
				return
			}
			for _, e := range slices.Backward(entries) {
				ok, err := l.isAt(placeOf(e), id)
				if (ok || err != nil) && !yield(placeOf(e), err) || err != nil {
					return
				}
			}
		}
	}
}

// isAt reports whether a pack has an object at a place. If the head of the pack cannot be parsed, the ids
// in it count, and a read of the object returns the damage.
func (l *snapshot) isAt(at place, id objects.ID) (bool, error) {
	p, err := l.pack(at.pack)
	if !errors.Is(err, errPack) {
		return err == nil && at.row < p.Len() && p.hasUnpurged(at.row, id), err
	}
	var found []byte
	e, err := l.packPart(headsBucket, at.pack)
	if err == nil {
		found, err = e.Part(packIDs+at.row*idSize, idSize)
	}
	return err != nil || objects.ID(found) == id, nil //nolint:nilerr // a read of the object returns the damage
}

// entriesOf returns the entries of a run that have the prefix of an id, valid until the next call. If
// no chunk can have it, the chunk after it is checked: were the key of that, or of a branch above it,
// damaged, its checksum or its order would be wrong.
func (l *snapshot) entriesOf(r index.Run, id objects.ID) ([]index.Entry, error) {
	prefix := index.Prefix(id[:])
	entries := l.chunk.entries
	run := index.Run{Level: r.Level, Number: r.Number}
	if len(entries) == 0 || l.chunk.run != run || prefix < entries[0].Prefix || prefix > entries[len(entries)-1].Prefix {
		var err error
		if entries, err = l.chunkOf(r, prefix); err != nil {
			return nil, err
		}
	}
	from := index.Search(entries, prefix)
	end := from
	for end < len(entries) && entries[end].Prefix == prefix {
		end++
	}
	return entries[from:end], nil
}

// chunkOf returns the first chunk of a run that ends with a prefix or behind it; empty: there is none.
func (l *snapshot) chunkOf(r index.Run, prefix uint32) ([]index.Entry, error) {
	for chunk, err := range l.chunksFrom(r, prefix) {
		if err != nil || prefix <= chunk[len(chunk)-1].Prefix {
			return chunk, err
		}
	}
	return nil, nil
}

// cachedChunk is the chunk that was read last, without entries if it was damaged, and the level and number of
// its run. Ids that are looked up in ascending order are mostly in it if the run is short.
type cachedChunk struct {
	run     index.Run
	entries []index.Entry
}

// changesToAddRun returns the changes that write a run of new entries, and merge runs of a level that is
// full. Runs are only merged with all newer ones, since the list is in the order of their age: an
// object that replaces a damaged one is in a newer run and must be found first.
func (l *snapshot) changesToAddRun(entries []index.Entry) (list []journal.Change, err error) {
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	kept, level := slices.Clone(all.List), index.Level(len(entries))
	for {
		same := 0
		for _, r := range kept {
			if r.Level == level {
				same++
			}
		}
		full := same >= index.Fan-1
		from := slices.IndexFunc(kept, func(r index.Run) bool { return r.Level < level || full && r.Level == level })
		if from < 0 {
			break
		}
		for _, r := range kept[from:] {
			more, gone, err := l.readRun(r)
			if err != nil {
				return nil, err
			}
			entries, list = append(entries, more...), append(list, gone...)
		}
		if kept = kept[:from]; full {
			level++
		}
	}
	level = max(level, index.Level(len(entries)))
	r := index.Run{Level: level, Number: all.Last + 1, Entries: uint64(len(entries))}
	r.Encode(entries, func(key, value []byte) { list = append(list, setKey(indexBucket, key, value)) })
	return append(list, setKey(metaBucket, runsKey, encodeRuns(index.Runs{List: append(kept, r), Last: r.Number}))), nil
}

// readRun reads a whole run, and returns the changes that delete it.
func (l *snapshot) readRun(r index.Run) (entries []index.Entry, gone []journal.Change, err error) {
	for chunk, err := range l.chunksFrom(r, 0) {
		if err != nil {
			return nil, nil, err
		}
		gone = append(gone, deleteKey(indexBucket, r.ChunkKey(chunk[0].Prefix)))
		entries = append(entries, chunk...)
	}
	if uint64(len(entries)) != r.Entries {
		return nil, nil, fmt.Errorf("index: run %d has %d entries of %d", r.Number, len(entries), r.Entries)
	}
	return entries, gone, nil
}
