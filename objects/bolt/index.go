package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// The index maps ids to packs. It consists of runs, as in a log-structured merge tree: each
// checkpoint writes one run of sorted entries, and runFan runs of a level are merged into one of
// the next level. So an entry is written once for each level, and a search reads few runs. The
// index can be rebuilt from the packs.
//
//	entry    the first 8 bytes of an id, pack u32, slot u16
//	chunk    sum u64, at most 140 entries; its key is level (one byte), number of
//	         the run u32, and the beginning of its first entry
//	runs     in meta, sealed: 1 level, number and entries of each run, the oldest
//	         first; 2 number of the last run
const (
	runFan       = 4
	chunkEntries = 140 // so that two fill a page, which bbolt does not go below
	entrySize    = 14
	indexPrefix  = 8
)

var runsKey = []byte("runs")

// place is a row of a pack.
type place struct {
	pack uint32
	slot int
}

type indexEntry [entrySize]byte

func newIndexEntry(id objects.ID, at place) (e indexEntry) {
	copy(e[:], id[:indexPrefix])
	binary.BigEndian.PutUint32(e[indexPrefix:], at.pack)
	binary.BigEndian.PutUint16(e[indexPrefix+4:], uint16(at.slot))
	return e
}

func (e indexEntry) place() place {
	return place{binary.BigEndian.Uint32(e[indexPrefix:]), int(binary.BigEndian.Uint16(e[indexPrefix+4:]))}
}

// run is a sorted list of entries.
type run struct {
	level, number, entries uint64
}

// runs is all runs, the oldest first.
type runs struct {
	list []run
	last uint64 // the highest number that a run has had
}

func (r runs) encode() []byte {
	var numbers []uint64
	for _, one := range r.list {
		numbers = append(numbers, one.level, one.number, one.entries)
	}
	var record canonical.Record
	record.Uints(1, &numbers)
	record.Uint(2, &r.last)
	return seal(runsKey, record.Bytes())
}

func decodeRuns(value []byte) (r runs, err error) {
	record, err := unseal(runsKey, value)
	if err != nil {
		return r, err
	}
	var numbers []uint64
	fields := canonical.NewReader(record)
	fields.Uints(1, &numbers)
	fields.Uint(2, &r.last)
	switch err = fields.Err(); {
	case err != nil:
	case len(numbers)%3 != 0:
		err = errors.New("half a run")
	}
	for ; err == nil && len(numbers) > 0; numbers = numbers[3:] {
		one := run{numbers[0], numbers[1], numbers[2]}
		if one.level > 0xff || one.number > r.last || one.number > 1<<32-1 {
			return runs{}, fmt.Errorf("run %d of level %d", one.number, one.level)
		}
		r.list = append(r.list, one)
	}
	return r, err
}

func (r run) key() []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(r.level)}, uint32(r.number))
}

// runs reads the list of runs.
func (l *snapshot) runs() (runs, error) {
	if l.index != nil {
		return *l.index, nil
	}
	value, err := l.get(metaBucket, runsKey)
	if err != nil {
		return runs{}, err
	}
	r, err := decodeRuns(value)
	if err != nil {
		return runs{}, fmt.Errorf("index: %w", err)
	}
	l.index = &r
	return r, nil
}

// encodeChunk encodes a chunk of a run.
func encodeChunk(r run, entries []indexEntry) (key, value []byte) {
	key = append(r.key(), entries[0][:indexPrefix]...)
	value = make([]byte, 8, 8+len(entries)*entrySize)
	for i := range entries {
		value = append(value, entries[i][:]...)
	}
	binary.BigEndian.PutUint64(value, checksum.Sum(key, value[8:]))
	return key, value
}

// parseChunk checks a chunk and returns its entries.
func parseChunk(key, value []byte) ([]byte, error) { return parseChunkIn(nil, key, value) }

func parseChunkIn(a *arena, key, value []byte) ([]byte, error) {
	entries, ok := []byte(nil), len(key) == 1+4+indexPrefix && len(value) > 8 && binary.BigEndian.Uint64(value) == checksum.Sum(key, value[8:])
	if ok {
		entries = value[8:]
		if key[0] == denseRun {
			entries, ok = decodeDense(a, key, entries)
		}
	}
	if !ok || len(entries)%entrySize != 0 {
		return nil, fmt.Errorf("index: the chunk %x is damaged", key)
	}
	return entries, nil
}

// chunks yields the chunks of a run, from the one in which the prefix of an id may come first.
func (l *snapshot) chunks(r run, from []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		prefix := r.key()
		start, value, err := l.floor(append(bytes.Clone(prefix), from...))
		if err == nil && !bytes.HasPrefix(start, prefix) {
			err, start = checkOtherRun(start, value), prefix
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range l.scanFile(indexBucket, start, false) {
			var entries []byte
			if err == nil {
				var value []byte
				if value, err = e.Value(); err == nil {
					entries, err = parseChunk(e.Key, value)
				}
			}
			if err == nil && !bytes.HasPrefix(e.Key, prefix) {
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
	for i := len(all.list) - 1; i >= 0; i-- {
		at, ok, err := l.locateIn(all.list[i], id)
		if ok || err != nil {
			return at, ok, err
		}
	}
	return place{}, false, nil
}

func (l *snapshot) locateIn(r run, id objects.ID) (place, bool, error) {
	entries, err := l.entriesOf(r, id)
	for i := len(entries) - entrySize; i >= 0 && err == nil; i -= entrySize { // the newest first: it replaces a damaged one
		e := indexEntry(entries[i:])
		if ok, err := l.confirm(e.place(), id); ok || err != nil {
			return e.place(), ok, err
		}
	}
	return place{}, false, err
}

// entriesOf returns the entries of a run that have the prefix of an id.
func (l *snapshot) entriesOf(r run, id objects.ID) ([]byte, error) {
	begin := r.truncateID(id[:indexPrefix])
	if c := l.chunk; c.run == r && bytes.Compare(c.entries[:indexPrefix], begin) <= 0 && bytes.Compare(begin, c.entries[len(c.entries)-entrySize:]) <= 0 {
		return among(c.entries, begin), nil
	}
	want := append(r.key(), begin...)
	key, value, err := l.floor(want)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(key, r.key()) {
		if err = checkOtherRun(key, value); err == nil {
			err = l.checkNextChunk(want)
		}
		return nil, err
	}
	entries, err := parseChunk(key, value)
	if err != nil {
		return nil, err
	}
	if last := len(entries) - entrySize; bytes.Compare(entries[last:last+indexPrefix], begin) < 0 {
		return nil, l.checkNextChunk(want)
	}
	if l.arena == nil {
		l.chunk = cachedChunk{r, entries}
	}
	return among(entries, begin), nil
}

// cachedChunk is the chunk that was read last. Ids that are looked up in ascending order are
// mostly in it if the run is short.
type cachedChunk struct {
	run     run
	entries []byte
}

// among returns those entries of a chunk that have a prefix.
func among(entries, begin []byte) []byte {
	from := searchEntries(entries, begin)
	end := from
	for end < len(entries) && bytes.Equal(entries[end:end+indexPrefix], begin) {
		end += entrySize
	}
	return entries[from:end]
}

// places returns every place of an object in packs. An object whose first place is damaged
// is stored again, so there may be several.
func (l *snapshot) places(id objects.ID) (list []place, err error) {
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	for _, r := range all.list {
		entries, err := l.entriesOf(r, id)
		if err != nil {
			return nil, err
		}
		for ; len(entries) > 0; entries = entries[entrySize:] {
			at := indexEntry(entries).place()
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

// checkOtherRun checks a chunk that a search met although it belongs to another run: its key
// may be damaged, and then its checksum is wrong.
func checkOtherRun(key, value []byte) error {
	if key == nil {
		return nil
	}
	_, err := parseChunk(key, value)
	return err
}

// checkNextChunk checks the chunk after a key that no chunk contains: if the key of that chunk,
// or of a branch above it, is damaged, its checksum or its order is wrong.
func (l *snapshot) checkNextChunk(key []byte) error {
	for e, err := range l.scanFile(indexBucket, key, false) {
		var value []byte
		if err == nil {
			value, err = e.Value()
		}
		if err == nil {
			_, err = parseChunk(e.Key, value)
		}
		return err
	}
	return nil
}

// searchEntries returns the offset of the first entry that is not below a prefix.
func searchEntries(entries, from []byte) int {
	low, high := 0, len(entries)/entrySize
	for low < high {
		mid := (low + high) / 2
		if bytes.Compare(entries[mid*entrySize:mid*entrySize+indexPrefix], from) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low * entrySize
}

// addRun returns the changes that write a run of new entries, and merge runs of a level that is
// full.
func (l *snapshot) addRun(entries []indexEntry) (list []journal.Change, err error) {
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	kept, level := slices.Clone(all.list), uint64(0)
	for {
		var old []run
		for _, r := range kept {
			if r.level == level {
				old = append(old, r)
			}
		}
		if len(old) < runFan-1 || level == 0xff {
			break
		}
		for _, r := range old {
			more, gone, err := l.readRun(r)
			if err != nil {
				return nil, err
			}
			entries, list = append(entries, more...), append(list, gone...)
		}
		kept = slices.DeleteFunc(kept, func(r run) bool { return r.level == level })
		level++
	}
	slices.SortFunc(entries, func(a, b indexEntry) int { return bytes.Compare(a[:], b[:]) })
	all.last++
	one := run{level, all.last, uint64(len(entries))}
	for at := 0; at < len(entries); {
		end := min(at+chunkEntries, len(entries))
		for end < len(entries) && bytes.Equal(entries[end][:indexPrefix], entries[end-1][:indexPrefix]) {
			end++ // entries with one prefix stay in one chunk
		}
		key, value := encodeChunk(one, entries[at:end])
		list, at = append(list, setKey(indexBucket, key, value)), end
	}
	return append(list, setKey(metaBucket, runsKey, runs{append(kept, one), all.last}.encode())), nil
}

// readRun reads a whole run, and returns the changes that delete it.
func (l *snapshot) readRun(r run) (entries []indexEntry, gone []journal.Change, err error) {
	for chunk, err := range l.chunks(r, nil) {
		if err != nil {
			return nil, nil, err
		}
		gone = append(gone, deleteKey(indexBucket, append(r.key(), chunk[:indexPrefix]...)))
		for ; len(chunk) > 0; chunk = chunk[entrySize:] {
			entries = append(entries, indexEntry(chunk))
		}
	}
	if uint64(len(entries)) != r.entries {
		return nil, nil, fmt.Errorf("index: run %d has %d entries of %d", r.number, len(entries), r.entries)
	}
	return entries, gone, nil
}
