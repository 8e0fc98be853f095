package objects

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// LaySheet lays objects together, at least one and at most [SheetObjects]. An object
// that leads to another of the list comes behind it, or leads out of the sheet. ids
// are those of the objects and then of what else they lead to, body is the data of
// contents and then of all else but commits, behind as many free bytes as front says. With a room, ids and
// table lie there until its Reset.
func LaySheet(list []Object, front int, room *SheetRoom) (ids, table, body []byte) {
	if room == nil {
		room = new(SheetRoom)
	}
	l := &room.laying
	if l.at == nil {
		l.at, l.forms = make(map[ID]int, len(list)), map[string]int{}
	}
	l.list = list
	defer func() { l.list = nil }()
	l.lay()
	return l.ids, l.table(), l.body(front)
}

// laying is a LaySheet on its way, and the memory for the next one.
type laying struct {
	list []Object
	ids  []byte
	at   map[ID]int // the place of an id

	forms  map[string]int
	told   []byte   // the forms
	form   []uint64 // of each object
	sizes  []uint64
	apart  []uint64
	data   []byte
	size   [parts]int
	every  []byte // counts, each less those before it
	last   counts
	steps  []byte // of the object at hand
	before []byte // its form
	all    []byte // the table
	lent   []byte // for the body
}

// nearStep is how far back an edge may lead and be in the form: beyond, too many
// forms would be of one object each.
const nearStep = 31

func (l *laying) lay() {
	l.ids = slices.Grow(l.ids[:0], len(l.list)*(idSize+idSize/4))
	for i := range l.list {
		l.ids = append(l.ids, l.list[i].ID[:]...)
	}
	clear(l.at)
	clear(l.forms)
	l.told, l.form, l.sizes, l.apart = l.told[:0], l.form[:0], l.sizes[:0], l.apart[:0]
	l.data, l.every, l.size, l.last = l.data[:0], l.every[:0], [parts]int{}, counts{}
	for i := range l.list {
		l.object(i)
		l.at[l.list[i].ID] = i
	}
}

func (l *laying) object(i int) {
	o := &l.list[i]
	if i%countEvery == 0 && i > 0 {
		l.count()
	}
	l.steps = l.steps[:0]
	for _, ids := range [2][]ID{o.Parents, o.Links} {
		for k := range ids {
			l.edge(i, &ids[k])
		}
	}
	size, first := len(o.Data), byte(o.Kind)
	if o.Kind == KindCommit {
		l.data = append(l.data, o.Data...)
	}
	l.size[partOf(o.Kind)] += size
	if size > 0 {
		first |= sizedForm
		l.sizes = append(l.sizes, uint64(size))
	}
	b := append(l.before[:0], first)
	b = binary.AppendUvarint(b, uint64(len(o.Parents)))
	b = binary.AppendUvarint(b, uint64(len(o.Links)))
	b = append(b, l.steps...)
	l.before = b
	n, ok := l.forms[string(b)]
	if !ok {
		n = len(l.forms)
		l.forms[string(b)] = n
		l.told = append(l.told, b...)
	}
	l.form = append(l.form, uint64(n))
}

// count notes how much of everything there is so far.
func (l *laying) count() {
	now, last := counts{len(l.apart), len(l.sizes), l.size}, l.last
	for _, more := range []int{
		now.edge - last.edge, now.sized - last.sized,
		now.data[inSheet] - last.data[inSheet], now.data[inWords] - last.data[inWords], now.data[inOthers] - last.data[inOthers],
	} {
		l.every = binary.AppendUvarint(l.every, uint64(more))
	}
	l.last = now
}

// edge notes where object i leads to.
func (l *laying) edge(i int, id *ID) {
	at, ok := l.at[*id]
	if ok && at < i && i-at <= nearStep {
		l.steps = append(l.steps, byte(i-at))
		return
	}
	if !ok {
		at = len(l.ids) / idSize
		l.ids = append(l.ids, id[:]...)
		l.at[*id] = at
	}
	l.steps = append(l.steps, 0)
	l.apart = append(l.apart, uint64(at))
}

// table is the sheet but for the ids.
func (l *laying) table() []byte {
	b := slices.Grow(l.all[:0], 2*len(l.told)+8*len(l.list)+len(l.data))
	b = binary.AppendUvarint(b, uint64(len(l.forms)))
	b = append(b, l.told...)
	b = append(b, width(l.form))
	for _, numbers := range [][]uint64{l.sizes, l.apart} {
		b = append(binary.AppendUvarint(b, uint64(len(numbers))), width(numbers))
	}
	b = binary.AppendUvarint(b, uint64(l.size[inWords]))
	b = append(b, l.every...)
	front := len(b)
	for _, numbers := range [][]uint64{l.form, l.sizes, l.apart} {
		for k := range width(numbers) {
			for _, v := range numbers {
				b = append(b, byte(v>>(8*k)))
			}
		}
	}
	l.all = appendFront(append(b, l.data...), b[:front])
	return l.all
}

// width is how many bytes the largest of some numbers needs.
func width(numbers []uint64) byte {
	all := uint64(0)
	for _, v := range numbers {
		all |= v
	}
	return byte(bits.Len64(all)+7) / 8
}

// body is the data of what is no commit, behind as many bytes as are asked for.
func (l *laying) body(front int) []byte {
	b, size := l.lent, front+l.size[inWords]+l.size[inOthers]
	if l.lent = nil; cap(b) < size {
		b = make([]byte, size)
	}
	b = b[:front]
	clear(b)
	for _, part := range [...]uint8{inWords, inOthers} {
		for i := range l.list {
			if partOf(l.list[i].Kind) == part {
				b = append(b, l.list[i].Data...)
			}
		}
	}
	return b
}
