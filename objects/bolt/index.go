package bolt

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

var runsKey = []byte("runs")

func encodeRuns(r index.Runs) []byte { return seal(runsKey, r.Encode()) }

func decodeRuns(value []byte) (index.Runs, error) {
	record, err := unseal(runsKey, value)
	if err != nil {
		return index.Runs{}, err
	}
	return index.DecodeRuns(record)
}

// place is a row of a pack.
type place struct {
	pack uint32
	slot int
}

func placeOf(e index.Entry) place { return place{e.Pack, int(e.Slot)} }

func newIndexEntry(id objects.ID, at place) index.Entry {
	return index.Entry{Prefix: index.Prefix(id[:]), Pack: at.pack, Slot: uint16(at.slot)}
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

// decodeChunk checks a chunk of the index and returns its entries.
func decodeChunk(key, value []byte) ([]index.Entry, error) {
	entries, err := index.Decode(key, value)
	if err != nil {
		err = fmt.Errorf("index: %w", err)
	}
	return entries, err
}

// chunks yields the chunks of a run, from the one in which a prefix may come first.
func (l *snapshot) chunks(r index.Run, prefix uint32) iter.Seq2[[]index.Entry, error] {
	return func(yield func([]index.Entry, error) bool) {
		start, value, err := l.floor(r.ChunkKey(prefix))
		var first []index.Entry
		if err == nil && start != nil { // also of another run: its key may be damaged
			first, err = decodeChunk(start, value)
		}
		switch {
		case err != nil:
			yield(nil, err)
			return
		case !r.Has(start):
			start = r.Key()
		case !yield(first, nil):
			return
		default:
			start = append(slices.Clone(start), 0) // the key after it
		}
		for e, err := range l.scanFile(indexBucket, start, false) {
			var entries []index.Entry
			if err == nil {
				var value []byte
				if value, err = e.Value(); err == nil {
					entries, err = decodeChunk(e.Key, value)
				}
			}
			if err == nil && !r.Has(e.Key) {
				return
			}
			if !yield(entries, err) || err != nil {
				return
			}
		}
	}
}

// floor returns the chunk with the greatest key that is not above key; nil: there is none.
func (l *snapshot) floor(key []byte) (found, value []byte, err error) {
	t, err := l.bucket(indexBucket)
	if err != nil {
		return nil, nil, err
	}
	e, ok, err := l.pages.Floor(t, key)
	if err != nil || !ok {
		return nil, nil, err
	}
	value, err = e.Value()
	return e.Key, value, err
}

// locate finds the place of an object in the packs.
func (l *snapshot) locate(id objects.ID) (place, bool, error) {
	all, err := l.runs()
	if err != nil {
		return place{}, false, err
	}
	for i := len(all.List) - 1; i >= 0; i-- {
		at, ok, err := l.locateIn(all.List[i], id)
		if ok || err != nil {
			return at, ok, err
		}
	}
	return place{}, false, nil
}

func (l *snapshot) locateIn(r index.Run, id objects.ID) (place, bool, error) {
	entries, err := l.entriesOf(r, id)
	if err != nil {
		return place{}, false, err
	}
	for _, e := range slices.Backward(entries) { // the newest first: it replaces a damaged one
		if ok, err := l.confirm(placeOf(e), id); ok || err != nil {
			return placeOf(e), ok, err
		}
	}
	return place{}, false, nil
}

// entriesOf returns the entries of a run that have the prefix of an id. If no chunk can have it,
// the chunk after it is checked: were the key of that, or of a branch above it, damaged, its
// checksum or its order would be wrong.
func (l *snapshot) entriesOf(r index.Run, id objects.ID) ([]index.Entry, error) {
	prefix := index.Prefix(id[:])
	entries := l.chunk.entries
	if l.chunk.run != r || prefix < entries[0].Prefix || prefix > entries[len(entries)-1].Prefix {
		entries = nil
		for chunk, err := range l.chunks(r, prefix) {
			if err != nil {
				return nil, err
			}
			l.chunk, entries = cachedChunk{r, chunk}, chunk
			if prefix <= chunk[len(chunk)-1].Prefix {
				break
			}
		}
	}
	from, end := index.Search(entries, prefix), len(entries)
	if prefix < 1<<32-1 {
		end = index.Search(entries, prefix+1)
	}
	return entries[from:end], nil
}

// cachedChunk is the chunk that was read last. Ids that are looked up in ascending order are
// mostly in it if the run is short.
type cachedChunk struct {
	run     index.Run
	entries []index.Entry
}

// places returns every place of an object in packs. An object whose first place is damaged
// is stored again, so there may be several.
func (l *snapshot) places(id objects.ID) (list []place, err error) {
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	for _, r := range all.List {
		entries, err := l.entriesOf(r, id)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			at := placeOf(e)
			p, err := l.pack(at.pack)
			if err != nil {
				return nil, err
			}
			if at.slot < p.Len() && p.has(at.slot, id) {
				list = append(list, at)
			}
		}
	}
	return list, nil
}

// addRun returns the changes that write a run of new entries, and merge runs of a level that is
// full.
func (l *snapshot) addRun(entries []index.Entry) (list []journal.Change, err error) {
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	kept, level := slices.Clone(all.List), index.Level(len(entries))
	for {
		var old []index.Run
		for _, r := range kept {
			if r.Level == level {
				old = append(old, r)
			}
		}
		if len(old) < index.Fan-1 {
			break
		}
		for _, r := range old {
			more, gone, err := l.readRun(r)
			if err != nil {
				return nil, err
			}
			entries, list = append(entries, more...), append(list, gone...)
		}
		kept = slices.DeleteFunc(kept, func(r index.Run) bool { return r.Level == level })
		level++
	}
	r := index.Run{Level: level, Number: all.Last + 1, Entries: uint64(len(entries))}
	r.Encode(entries, func(key, value []byte) { list = append(list, setKey(indexBucket, key, value)) })
	return append(list, setKey(metaBucket, runsKey, encodeRuns(index.Runs{List: append(kept, r), Last: r.Number}))), nil
}

// readRun reads a whole run, and returns the changes that delete it.
func (l *snapshot) readRun(r index.Run) (entries []index.Entry, gone []journal.Change, err error) {
	for chunk, err := range l.chunks(r, 0) {
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
