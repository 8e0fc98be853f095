package bolt

import (
	"encoding/binary"
	"sync"
)

// known is what folds remember of the index: which ids may lie in the runs that they have
// read. Each id sets four bits that follow from its beginning, so that one whose bits are
// not all set lies in none of those runs. A fold reads the runs that are new, and not the
// whole index again and again. Where it is wrong nothing is lost: an id that it has and the
// file does not is looked for in vain, and an object that it lacks is laid down twice.
type known struct {
	mu     sync.Mutex
	number uint64 // of the file
	runs   map[run]bool
	layers []layer // the last takes more
}

// layer is bits for some number of ids.
type layer struct {
	lines []knownLine
	free  int // ids for which there is room
}

// knownLine holds the bits of ids that begin alike, so that a list of ids in their order
// goes once through memory.
type knownLine [8]uint64

const (
	knownEach = 24      // bits for an id, so that one in a thousand is looked for in vain
	knownMost = 3 << 20 // ids for which there is room; with more it is wrong more often
	lineBits  = 8 * 64
)

// follow makes ready for the runs of a file, of which those that are read already need not
// be read again. more is how many ids come with each fold.
func (k *known) follow(number uint64, list []run, more int) {
	if k.number != number {
		k.number, k.runs, k.layers = number, nil, nil
	}
	entries, held := more, make(map[run]bool, len(list)+1)
	for _, r := range list {
		entries += int(min(r.entries, knownMost))
		if k.runs[r] {
			held[r] = true
		}
	}
	k.runs = held
	room := 0
	for i := range k.layers {
		room += len(k.layers[i].lines) * lineBits / knownEach
	}
	if n := len(k.layers); n == 0 || k.layers[n-1].free < more && room < knownMost {
		size := min(2*entries, knownMost-room) // as many come again before there is the next
		k.layers = append(k.layers, layer{make([]knownLine, size*knownEach/lineBits+1), size})
	}
}

// place is where the bits of an id lie: a line, and four bits of it.
func (y *layer) place(begin uint64) (line *knownLine, at [4]uint16) {
	line = &y.lines[begin>>32*uint64(len(y.lines))>>32]
	for i := range at {
		at[i] = uint16(begin >> (9 * i) % lineBits)
	}
	return line, at
}

func (k *known) add(begin uint64) {
	if k.has(begin) {
		return
	}
	last := &k.layers[len(k.layers)-1]
	line, at := last.place(begin)
	for _, b := range at {
		line[b/64] |= 1 << (b % 64)
	}
	last.free--
}

// has tells whether an id may be in it.
func (k *known) has(begin uint64) bool {
	for i := range k.layers {
		line, at := k.layers[i].place(begin)
		missing := false
		for _, b := range at {
			missing = missing || line[b/64]&(1<<(b%64)) == 0
		}
		if !missing {
			return true
		}
	}
	return false
}

// learn reads a run.
func (k *known) learn(l *look, r run) error {
	for entries, err := range l.chunks(r, nil) {
		if err != nil {
			return err
		}
		for ; len(entries) > 0; entries = entries[entrySize:] {
			k.add(binary.BigEndian.Uint64(entries))
		}
	}
	k.runs[r] = true
	return nil
}

// recallKnown finds out which objects may lie in runs that are known by now, and gives the
// runs that are not: one that is much longer than the list, or knows less of its ids.
func (l *look) recallKnown(list []run, s *sorted) (rest []run, err error) {
	k := l.known
	if k == nil {
		return list, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.follow(l.number, list, len(s.list))
	for _, r := range list {
		if k.runs[r] {
			continue
		}
		if r.prefix() < indexPrefix || r.entries/chunkEntries > 2*uint64(len(s.order)) {
			rest = append(rest, r)
		} else if err := k.learn(l, r); err != nil {
			return nil, err
		}
	}
	for _, at := range s.order {
		s.seen[at.at] = s.seen[at.at] || k.has(at.begin)
	}
	return rest, nil
}
