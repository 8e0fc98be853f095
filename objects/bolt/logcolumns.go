package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// Entries that lie together are laid column by column, so that what is the same in all
// of them takes next to nothing, and what follows is not kept: where a ref was is mostly
// where the entry before left it, and what it was moved to lies in a pack of the file,
// whose number is shorter than an id. In the order in which they come:
//
//	prev     hash of the entry before the first, if there is one
//	hash     of the last entry: what is put together again is right, or damage
//	n        how many entries, a varint
//	texts    how many, a varint; then each of authors, commands and names of refs,
//	         a varint length and the bytes
//	times    milliseconds since the entry before (of the first: since 1970), zigzag
//	groups   how many, a varint; then each group of 16 bytes
//	notes    for each entry the numbers of author and command in texts; twice its group,
//	         and 1 more when it continues; the group that it reverts; and how many refs it
//	         moves. A group is 0: none, 1: the next of groups, or 2 and how many of groups
//	         were used first after it
//	moves    for each the number of the name in texts, and what old and new are: a
//	         byte, 4 times that of the old one and that of the new
//	places   how much pack and slot are above those of the place before, zigzag
//	ids      32 bytes each
const (
	isNone  = 0
	isID    = 1 // one of ids
	isPlace = 2 // one of places
	isLeft  = 3 // of an old one: where the last entry here that moves the ref left it
)

// idAt gives the id of the object at a place of a pack, placeOf the place of one, or none
// (pack 0).
type (
	idAt    func(place) (objects.ID, error)
	placeOf func(objects.ID) place
)

// logWriter gathers the columns.
type logWriter struct {
	where  placeOf           // nil: no place is known
	number map[string]uint64 // of a text
	group  map[objects.Group]uint64
	last   place
	left   map[string]objects.ID

	texts, times, groups, notes, moves, places, ids []byte
}

func encodeColumns(list []objects.LogEntry, where placeOf) (b []byte) {
	w := &logWriter{where: where, number: map[string]uint64{}, group: map[objects.Group]uint64{}, left: map[string]objects.ID{}}
	before := int64(0)
	for _, e := range list {
		now := e.Note.Time.UnixMilli()
		w.times = binary.AppendVarint(w.times, now-before)
		before = now
		w.notes = binary.AppendUvarint(w.notes, w.text(e.Note.Author))
		w.notes = binary.AppendUvarint(w.notes, w.text(e.Note.Command))
		group := 2 * w.groupNumber(e.Note.Group)
		if e.Note.Continues {
			group++
		}
		w.notes = binary.AppendUvarint(w.notes, group)
		w.notes = binary.AppendUvarint(w.notes, w.groupNumber(e.Note.Reverts))
		w.notes = binary.AppendUvarint(w.notes, uint64(len(e.Refs)))
		for _, u := range e.Refs {
			w.moves = binary.AppendUvarint(w.moves, w.text(u.Name))
			old := byte(isLeft)
			if left, ok := w.left[u.Name]; !ok || left != u.Old {
				old = w.id(u.Old)
			}
			w.moves = append(w.moves, 4*old+w.id(u.New))
			w.left[u.Name] = u.New
		}
	}
	if list[0].Seq > 1 {
		b = append(b, list[0].Prev[:]...)
	}
	b = append(b, list[len(list)-1].Hash[:]...)
	b = binary.AppendUvarint(b, uint64(len(list)))
	b = binary.AppendUvarint(b, uint64(len(w.number)))
	groups := binary.AppendUvarint(nil, uint64(len(w.group)))
	for _, column := range [][]byte{w.texts, w.times, groups, w.groups, w.notes, w.moves, w.places, w.ids} {
		b = append(b, column...)
	}
	return b
}

// text gives the number of a text.
func (w *logWriter) text(s string) uint64 {
	n, ok := w.number[s]
	if !ok {
		n = uint64(len(w.number))
		w.number[s] = n
		w.texts = append(binary.AppendUvarint(w.texts, uint64(len(s))), s...)
	}
	return n
}

// groupNumber gives the number of a group.
func (w *logWriter) groupNumber(g objects.Group) uint64 {
	at, used := w.group[g]
	switch {
	case g.IsZero():
		return 0
	case used:
		return 1 + uint64(len(w.group)) - at
	}
	w.group[g] = uint64(len(w.group))
	w.groups = append(w.groups, g[:]...)
	return 1
}

// id writes an id in the shortest way and says in which.
func (w *logWriter) id(id objects.ID) byte {
	var at place
	if w.where != nil {
		at = w.where(id)
	}
	switch {
	case id.IsZero():
		return isNone
	case at.pack > 0:
		w.places = binary.AppendVarint(w.places, int64(at.pack)-int64(w.last.pack))
		w.places = binary.AppendVarint(w.places, int64(at.slot-w.last.slot))
		w.last = at
		return isPlace
	default:
		w.ids = append(w.ids, id[:]...)
		return isID
	}
}

// logReader reads the columns. After an error everything is zero.
type logReader struct {
	b    []byte
	err  error
	at   idAt
	last place
}

var errColumns = errors.New("it is cut off")

func (r *logReader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)) {
		r.err = errColumns
	}
	if r.err != nil {
		return nil
	}
	piece := r.b[:n]
	r.b = r.b[n:]
	return piece
}

func (r *logReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err = errColumns
	}
	r.take(uint64(max(n, 0)))
	return v
}

// below reads a number that has to be below a limit.
func (r *logReader) below(limit int) int {
	v := r.uint()
	if r.err == nil && v >= uint64(max(limit, 0)) {
		r.err = fmt.Errorf("a number is %d, and has to be below %d", v, limit)
	}
	if r.err != nil {
		return 0
	}
	return int(v)
}

func (r *logReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.err = errColumns
	}
	r.take(uint64(max(n, 0)))
	return v
}

func (r *logReader) hash() (id objects.ID) {
	copy(id[:], r.take(uint64(idSize)))
	return id
}

// place reads the next place and finds out what lies there.
func (r *logReader) place() (id objects.ID) {
	pack, slot := int64(r.last.pack)+r.int(), int64(r.last.slot)+r.int()
	if r.err == nil && (pack < 1 || pack > 1<<32-1 || slot < 0 || slot >= packObjects) {
		r.err = fmt.Errorf("it leads to object %d of pack %d", slot, pack)
	}
	if r.err == nil {
		r.last = place{uint32(pack), int(slot)}
		id, r.err = r.at(r.last)
	}
	return id
}

// shape is an entry as far as it is known before its ids are.
type shape struct {
	note  objects.Note
	moves []shapeOfMove
}

type shapeOfMove struct {
	name     string
	old, new byte
}

// decodeColumns puts the entries together again, the first of which has a number.
func decodeColumns(seq uint64, b []byte, at idAt) (list []objects.LogEntry, err error) {
	r := &logReader{b: b, at: at}
	before := objects.LogEntry{Seq: seq - 1}
	if seq > 1 {
		before.Hash = r.hash()
	}
	want := r.hash()
	shapes := r.shapes()
	ids := r.resolve(shapes)
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes are left", len(r.b))
	}
	if r.err == nil && len(shapes) == 0 {
		r.err = errors.New("no entries")
	}
	if r.err != nil {
		return nil, r.err
	}
	left := map[string]objects.ID{}
	next := func() (id objects.ID) { id, ids = ids[0], ids[1:]; return id }
	for _, s := range shapes {
		var refs []objects.RefUpdate
		for _, m := range s.moves {
			u := objects.RefUpdate{Name: m.name}
			switch m.old {
			case isLeft:
				u.Old = left[m.name]
			case isNone:
			default:
				u.Old = next()
			}
			if m.new != isNone {
				u.New = next()
			}
			left[m.name] = u.New
			refs = append(refs, u)
		}
		before = objects.NewLogEntry(before, s.note, refs)
		list = append(list, before)
	}
	if before.Hash != want {
		return nil, fmt.Errorf("entry %d has another hash than is kept", before.Seq)
	}
	return list, nil
}

// shapes reads the columns before the ids.
func (r *logReader) shapes() []shape {
	n := r.below(logEntries + 1)
	texts := make([]string, r.below(len(r.b)+1))
	for i := range texts {
		texts[i] = string(r.take(r.uint()))
	}
	text := func() string {
		if i := r.below(len(texts)); r.err == nil {
			return texts[i]
		}
		return ""
	}
	if r.err != nil {
		return nil
	}
	list, now, moves := make([]shape, n), int64(0), 0
	for i := range list {
		now += r.int()
		list[i].note.Time = time.UnixMilli(now).UTC()
	}
	count, group := r.groups()
	for i := range list {
		s := &list[i]
		s.note.Author, s.note.Command = text(), text()
		own := r.below(2 * (count + 2))
		s.note.Group, s.note.Continues = group(own/2), own%2 == 1
		s.note.Reverts = group(r.below(count + 2))
		n := r.below(len(r.b) + 1 - moves)
		moves += n
		s.moves = make([]shapeOfMove, n)
	}
	for i := range list {
		for k := range list[i].moves {
			m := &list[i].moves[k]
			m.name = text()
			if b := r.take(1); b != nil {
				m.old, m.new = b[0]/4, b[0]%4
			}
			if r.err == nil && (m.old > isLeft || m.new >= isLeft) {
				r.err = fmt.Errorf("a move of %q from %d to %d", m.name, m.old, m.new)
			}
		}
	}
	return list
}

// groups reads the column of groups. It returns how many there are, and what gives the
// group that a number of the notes stands for, in their order.
func (r *logReader) groups() (count int, group func(n int) objects.Group) {
	groups, used := make([]objects.Group, r.below(len(r.b)/len(objects.Group{})+1)), 0
	for i := range groups {
		copy(groups[i][:], r.take(uint64(len(objects.Group{}))))
	}
	return len(groups), func(n int) (g objects.Group) {
		switch {
		case n == 0:
			return g
		case n == 1:
			used++
			n++
		}
		if at := used - (n - 1); at >= 0 && used <= len(groups) {
			return groups[at]
		}
		r.err = cmp.Or(r.err, errors.New("it names a group that is not there"))
		return g
	}
}

// resolve reads places and ids, and gives them in the order in which they are needed.
func (r *logReader) resolve(shapes []shape) (ids []objects.ID) {
	var kinds []byte
	for _, s := range shapes {
		for _, m := range s.moves {
			for _, kind := range []byte{m.old, m.new} {
				if kind == isID || kind == isPlace {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	ids = make([]objects.ID, len(kinds))
	for i, kind := range kinds {
		if kind == isPlace && r.err == nil {
			ids[i] = r.place()
		}
	}
	for i, kind := range kinds {
		if kind == isID {
			ids[i] = r.hash()
		}
	}
	return ids
}
