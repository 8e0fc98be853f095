package pack

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// EncodeTable encodes objects, at least one and at most [MaxObjects]. An object that
// refers to another one of the list comes after it, or the edge leads out of the table.
// ids are those of the objects and then of the other objects that they refer to. body is
// the data of the contents and then of all other objects but commits, after as many zero
// bytes as skip says. With an arena ids and table are part of it, until its Reset.
func EncodeTable(list []objects.Object, skip int, a *Arena) (ids, table, body []byte) {
	if a == nil {
		a = new(Arena)
	}
	e := &a.encoder
	if e.at == nil {
		e.at, e.numbers = make(map[objects.ID]int, len(list)), map[string]int{}
	}
	e.list = list
	defer func() { e.list = nil }()
	e.encode()
	return e.ids, e.table(), e.body(skip)
}

// tableEncoder is the state of an EncodeTable, and memory for the next one.
type tableEncoder struct {
	list []objects.Object
	ids  []byte
	at   map[objects.ID]int // the place of an id

	numbers     map[string]int // of the templates
	templates   []byte         // encoded
	template    []uint64       // of each object: its number
	sizes       []uint64
	explicit    []uint64
	data        []byte
	size        [parts]int
	checkpoints []byte // encoded: each less the one before it
	last        counts
	deltas      []byte // of the object at hand
	one         []byte // its template
	all         []byte // the table
}

// maxDelta is the greatest delta of an edge in a template. With a greater one too many
// templates would have a single object.
const maxDelta = 31

func (e *tableEncoder) encode() {
	e.ids = slices.Grow(e.ids[:0], len(e.list)*(idSize+idSize/4))
	for i := range e.list {
		e.ids = append(e.ids, e.list[i].ID[:]...)
	}
	clear(e.at)
	clear(e.numbers)
	e.templates, e.template, e.sizes, e.explicit = e.templates[:0], e.template[:0], e.sizes[:0], e.explicit[:0]
	e.data, e.checkpoints, e.size, e.last = e.data[:0], e.checkpoints[:0], [parts]int{}, counts{}
	for i := range e.list {
		e.object(i)
		e.at[e.list[i].ID] = i
	}
}

func (e *tableEncoder) object(i int) {
	o := &e.list[i]
	if i%checkpointEvery == 0 && i > 0 {
		e.checkpoint()
	}
	e.deltas = e.deltas[:0]
	for _, ids := range [2][]objects.ID{o.Parents, o.Links} {
		for k := range ids {
			e.edge(i, &ids[k])
		}
	}
	size, first := len(o.Data), byte(o.Kind)
	if o.Kind == objects.KindCommit {
		e.data = append(e.data, o.Data...)
	}
	e.size[partOf(o.Kind)] += size
	if size > 0 {
		first |= sizedTemplate
		e.sizes = append(e.sizes, uint64(size))
	}
	b := append(e.one[:0], first)
	b = binary.AppendUvarint(b, uint64(len(o.Parents)))
	b = binary.AppendUvarint(b, uint64(len(o.Links)))
	b = append(b, e.deltas...)
	e.one = b
	n, ok := e.numbers[string(b)]
	if !ok {
		n = len(e.numbers)
		e.numbers[string(b)] = n
		e.templates = append(e.templates, b...)
	}
	e.template = append(e.template, uint64(n))
}

// checkpoint adds how much of everything there is so far.
func (e *tableEncoder) checkpoint() {
	now, last := counts{len(e.explicit), len(e.sizes), e.size}, e.last
	for _, more := range []int{
		now.edge - last.edge, now.sized - last.sized,
		now.data[partTable] - last.data[partTable], now.data[partContent] - last.data[partContent], now.data[partOther] - last.data[partOther],
	} {
		e.checkpoints = binary.AppendUvarint(e.checkpoints, uint64(more))
	}
	e.last = now
}

// edge adds an edge of object i.
func (e *tableEncoder) edge(i int, id *objects.ID) {
	at, ok := e.at[*id]
	if ok && at < i && i-at <= maxDelta {
		e.deltas = append(e.deltas, byte(i-at))
		return
	}
	if !ok {
		at = len(e.ids) / idSize
		e.ids = append(e.ids, id[:]...)
		e.at[*id] = at
	}
	e.deltas = append(e.deltas, 0)
	e.explicit = append(e.explicit, uint64(at))
}

// table returns the table without the ids.
func (e *tableEncoder) table() []byte {
	b := slices.Grow(e.all[:0], 2*len(e.templates)+8*len(e.list)+len(e.data))
	b = binary.AppendUvarint(b, uint64(len(e.numbers)))
	b = append(b, e.templates...)
	b = append(b, width(e.template))
	for _, numbers := range [][]uint64{e.sizes, e.explicit} {
		b = append(binary.AppendUvarint(b, uint64(len(numbers))), width(numbers))
	}
	b = binary.AppendUvarint(b, uint64(e.size[partContent]))
	b = append(b, e.checkpoints...)
	header := len(b)
	for _, numbers := range [][]uint64{e.template, e.sizes, e.explicit} {
		for k := range width(numbers) {
			for _, v := range numbers {
				b = append(b, byte(v>>(8*k)))
			}
		}
	}
	e.all = appendTrailer(append(b, e.data...), b[:header])
	return e.all
}

// width returns how many bytes the largest of some numbers needs.
func width(numbers []uint64) byte {
	all := uint64(0)
	for _, v := range numbers {
		all |= v
	}
	return byte(bits.Len64(all)+7) / 8
}

// body returns the data of all objects but commits, after skip zero bytes.
func (e *tableEncoder) body(skip int) []byte {
	b := make([]byte, skip, skip+e.size[partContent]+e.size[partOther])
	for _, part := range [...]uint8{partContent, partOther} {
		for i := range e.list {
			if partOf(e.list[i].Kind) == part {
				b = append(b, e.list[i].Data...)
			}
		}
	}
	return b
}
