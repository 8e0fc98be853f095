package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// What follows looks where nothing leads any more. It believes no number and no
// page: an object is what hashes to its id, a ref or a log entry what has its seal.

// fragments are the pieces of a pack that were found: perhaps of several, since a page
// may be an old one.
type fragments struct {
	heads, bodies []extent
	ids           [][]byte // of the objects of a head that was found, as they were put right
}

func (a *checker) addHead(n uint32, x extent) {
	if s := a.fragmentsOf(n); s != nil {
		s.heads = append(s.heads, x)
	}
}

func (a *checker) addBody(n uint32, x extent) {
	if s := a.fragmentsOf(n); s != nil {
		s.bodies = append(s.bodies, x)
	}
}

// fragmentsOf is what was found of a pack; nil: nobody will look at it.
func (a *checker) fragmentsOf(n uint32) *fragments {
	if !a.to.Deep || a.whole[n] {
		return nil
	}
	if a.broken[n] == nil {
		a.broken[n] = &fragments{}
	}
	return a.broken[n]
}

// salvage looks at every page, also those that the walk did not reach, at the whole
// journal, and puts the pieces together of packs that were not found whole.
func (a *checker) salvage() error {
	size := int64(a.meta.PageSize)
	if size == 0 {
		size = a.guessPageSize()
	}
	page := make([]byte, size)
	for at := int64(0); at < a.files.size && a.harmful > 0; at += size {
		n, err := a.files.ReadAt(page, at)
		if isStop(err) {
			return err
		}
		if err := a.salvagePage(page[:n], at); err != nil {
			return err
		}
	}
	if err := a.salvageJournal(); err != nil {
		return err
	}
	for n, s := range a.broken {
		if err := a.salvagePack(n, s); err != nil {
			return err
		}
	}
	return nil
}

// guessPageSize finds the size with which most pages have the number they say.
func (a *checker) guessPageSize() int64 {
	best, most := int64(4096), 0
	var head [8]byte
	for size := int64(page.MinSize); size <= 64<<10; size *= 2 {
		fit := 0
		for id := int64(2); id < 1000 && id*size < a.files.size; id++ {
			if _, err := a.files.ReadAt(head[:], id*size); err == nil && page.Order.Uint64(head[:]) == uint64(id) {
				fit++
			}
		}
		if fit > most {
			best, most = size, fit
		}
	}
	return best
}

// Pages and keys of a store are never larger.
const (
	mostPage = 8 << 20
	mostKey  = 300
)

// piece is an element of a leaf as it says it is.
type piece struct{ begin, keySize, size int64 }

func (e piece) plausible(table int64) bool {
	return e.begin >= table && e.begin <= mostPage && e.keySize > 0 && e.keySize <= mostKey && e.size <= mostPage
}

// pieces are the elements of a leaf that says it has so many, and what may be more.
func pieces(b []byte, count int) (all []piece) {
	for i := 0; page.HeaderSize+(i+1)*page.ElementSize <= len(b); i++ {
		from := int64(page.HeaderSize + i*page.ElementSize)
		e := b[from:]
		one := piece{from + int64(page.Order.Uint32(e[4:])), int64(page.Order.Uint32(e[8:])), int64(page.Order.Uint32(e[12:]))}
		if i >= count && !one.plausible(from+page.ElementSize) {
			break
		}
		all = append(all, one)
	}
	return all
}

// guesses are what an element can be that lies between two others.
func (e piece) guesses(begin, end int64) (list []piece) {
	for _, keySize := range []int64{4, int64(idSize)} {
		for _, size := range []int64{end - begin - keySize, e.size} {
			if guess := (piece{begin, keySize, size}); guess != e && size > 0 {
				list = append(list, guess)
			}
		}
	}
	return list
}

// salvagePage takes a page for a leaf, whatever it says it is. Its elements are
// believed as far as they lie in the file; and since each begins where the one
// before it ends, one that cannot be believed is looked for there. The page of an
// inline bucket has no place.
func (a *checker) salvagePage(b []byte, at int64) error {
	if len(b) < page.HeaderSize {
		return nil
	}
	count := int(page.Order.Uint16(b[10:]))
	all := pieces(b, count)
	table := int64(page.HeaderSize + min(max(count, 1), len(all))*page.ElementSize)
	whole := min(int64(1+page.Order.Uint32(b[12:]))*int64(len(b)), mostPage)
	end := table
	for i, e := range all {
		next := whole
		if i+1 < min(count, len(all)) && all[i+1].plausible(table) {
			next = all[i+1].begin
		}
		for _, guess := range e.guesses(end, next) {
			if guess.plausible(table) {
				if err := a.salvageElement(b, at, guess); err != nil {
					return err
				}
			}
		}
		if end = next; !e.plausible(0) {
			continue
		}
		if err := a.salvageElement(b, at, e); err != nil {
			return err
		}
		end = e.begin + e.keySize + e.size
	}
	return nil
}

// salvageElement takes an element whose value is in the page, or behind it in the file.
func (a *checker) salvageElement(b []byte, at int64, e piece) error {
	value := e.begin + e.keySize
	if value+e.size <= int64(len(b)) {
		return a.salvageEntry(b[e.begin:value], extent{value: b[value : value+e.size]})
	}
	if at < 0 {
		return nil
	}
	key := make([]byte, e.keySize)
	if _, err := a.files.ReadAt(key, at+e.begin); err != nil {
		if isStop(err) {
			return err
		}
		return nil
	}
	return a.salvageEntry(key, extent{at: at + value, size: e.size})
}

// salvageEntry takes what it can of a key and its value.
func (a *checker) salvageEntry(key []byte, x extent) error {
	if x.value == nil {
		if x.at+x.size > a.files.size {
			x.size = max(a.files.size-x.at, 0)
		}
		if len(key) != 4 { // packs are read when all of their pieces are known
			value, err := a.extent(x)
			if isStop(err) {
				return err
			}
			x.value = value
		}
	}
	switch {
	case len(key) == 4:
		n := binary.BigEndian.Uint32(key)
		if x.value != nil {
			x.value = bytes.Clone(x.value)
		}
		a.addHead(n, x)
		a.addBody(n, x) // which of the two it is shows when they are put together
	case len(key) == idSize:
		o, err := decodeObject(objects.ID(key), x.value)
		if e := (*objects.PurgedError)(nil); errors.As(err, &e) {
			return a.erased(e.Tombstone)
		}
		if err == nil && o.Check() == nil {
			return a.pass(a.look([]objects.Object{o}), nil)
		}
	case bytes.HasPrefix(key, []byte("refs/")):
		if r, err := decodeRef(string(key), x.value); err == nil {
			a.names.addFound(r.Ref)
		}
	case len(key) == 8:
		list, _ := decodeEntries(key, x.value)
		for _, e := range list {
			a.names.keep(e)
		}
	case isBucket(string(key)) && len(x.value) > 2*page.HeaderSize && page.Order.Uint64(x.value) == 0:
		return a.salvagePage(x.value[page.HeaderSize:], -1<<40)
	}
	return nil
}

func (n *refState) addFound(r objects.Ref) {
	if n.found == nil {
		n.found = map[string]objects.Ref{}
	}
	if have, ok := n.found[r.Name]; !ok || have.Updated.Before(r.Updated) || have.Updated.Equal(r.Updated) && have.Version < r.Version {
		n.found[r.Name] = r
	}
}

// extent reads an extent.
func (a *checker) extent(x extent) ([]byte, error) {
	if x.value != nil {
		return x.value, nil
	}
	b := make([]byte, x.size)
	n, err := a.files.ReadAt(b, x.at)
	return b[:n], err
}

// salvageJournal takes the changes of every frame, of whatever generation, and of one
// that is damaged those that can still be told apart.
func (a *checker) salvageJournal() error {
	b := a.files.journal
	for at := journal.Start; at+journal.FrameHeader <= len(b); at += journal.Alignment {
		if string(b[at:at+4]) != journal.Magic {
			continue
		}
		payload := b[at+journal.FrameHeader:]
		size := min(int(binary.BigEndian.Uint32(b[at+4:])), len(payload))
		list, _ := journal.ParseChanges(payload[:size], len(buckets)) // those before the damage
		for _, c := range list {
			if c.Value == nil {
				continue
			}
			if err := a.salvageEntry(c.Key, extent{value: c.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}
