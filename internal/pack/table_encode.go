package pack

import (
	"encoding/binary"
	"math/bits"

	"github.com/tract-vcs/tract/objects"
)

// EncodeTable encodes objects, at least one and at most [MaxObjects]. An object that
// refers to another one of the list comes after it, or the edge leads out of the table.
// ids are those of the objects and then of the other objects that they refer to. body is
// the data of the contents and then of all other objects but commits, after as many zero
// bytes as skip says.
func EncodeTable(list []objects.Object, skip int) (ids, table, body []byte) {
	e := tableEncoder{at: make(map[objects.ID]int, len(list)), numbers: map[string]int{}}
	e.ids = make([]byte, 0, len(list)*(idSize+idSize/4))
	e.template, e.sizes = make([]uint64, 0, len(list)), make([]uint64, 0, len(list))
	for i := range list {
		e.ids = append(e.ids, list[i].ID[:]...)
	}
	for i := range list {
		if i%checkpointEvery == 0 && i > 0 {
			e.addCheckpoint()
		}
		e.addObject(i, &list[i])
		e.at[list[i].ID] = i
	}
	body = make([]byte, skip, skip+e.size[sectionContent]+e.size[sectionOther])
	for _, section := range [...]uint8{sectionContent, sectionOther} {
		for i := range list {
			if sectionOf(list[i].Kind) == section {
				body = append(body, list[i].Data...)
			}
		}
	}
	return e.ids, e.encodeWithoutIDs(), body
}

// tableEncoder is the state of an EncodeTable.
type tableEncoder struct {
	ids []byte
	at  map[objects.ID]int // the place of an id

	numbers         map[string]int // of the templates
	templates       []byte         // encoded
	template        []uint64       // of each object: its number
	one             []byte         // the template of the last object; its memory is used again
	sizes           []uint64
	explicitTargets []uint64
	data            []byte
	size            [sections]int
	checkpoints     []byte // encoded: each less the one before it
	last            counts
}

// maxDelta is the greatest delta of an edge in a template. With a greater one too many
// templates would have a single object.
const maxDelta = 31

func (e *tableEncoder) addObject(i int, o *objects.Object) {
	kind := byte(o.Kind)
	if o.Kind == objects.KindCommit {
		e.data = append(e.data, o.Data...)
	}
	e.size[sectionOf(o.Kind)] += len(o.Data)
	if len(o.Data) > 0 {
		kind |= sizedTemplate
		e.sizes = append(e.sizes, uint64(len(o.Data)))
	}
	b := binary.AppendUvarint(append(e.one[:0], kind), uint64(len(o.Parents)))
	b = binary.AppendUvarint(b, uint64(len(o.Links)))
	for _, ids := range [2][]objects.ID{o.Parents, o.Links} {
		for k := range ids {
			b = append(b, e.encodeEdge(i, &ids[k]))
		}
	}
	e.one = b
	n, ok := e.numbers[string(b)]
	if !ok {
		n = len(e.numbers)
		e.numbers[string(b)] = n
		e.templates = append(e.templates, b...)
	}
	e.template = append(e.template, uint64(n))
}

// addCheckpoint adds how much of everything there is so far.
func (e *tableEncoder) addCheckpoint() {
	now, last := counts{len(e.explicitTargets), len(e.sizes), e.size}, e.last
	for _, more := range []int{
		now.explicit - last.explicit, now.sized - last.sized,
		now.data[sectionTable] - last.data[sectionTable], now.data[sectionContent] - last.data[sectionContent], now.data[sectionOther] - last.data[sectionOther],
	} {
		e.checkpoints = binary.AppendUvarint(e.checkpoints, uint64(more))
	}
	e.last = now
}

// encodeEdge returns the delta of an edge of object i, or adds its target to the explicit ones and
// returns 0.
func (e *tableEncoder) encodeEdge(i int, id *objects.ID) (delta byte) {
	at, ok := e.at[*id]
	if ok && at < i && i-at <= maxDelta {
		return byte(i - at)
	}
	if !ok {
		at = len(e.ids) / idSize
		e.ids = append(e.ids, id[:]...)
		e.at[*id] = at
	}
	e.explicitTargets = append(e.explicitTargets, uint64(at))
	return 0
}

// encodeWithoutIDs returns the table without the ids.
func (e *tableEncoder) encodeWithoutIDs() []byte {
	b := make([]byte, 0, 2*len(e.templates)+8*len(e.template)+len(e.data))
	b = binary.AppendUvarint(b, uint64(len(e.numbers)))
	b = append(b, e.templates...)
	b = append(b, width(e.template))
	for _, numbers := range [][]uint64{e.sizes, e.explicitTargets} {
		b = append(binary.AppendUvarint(b, uint64(len(numbers))), width(numbers))
	}
	b = binary.AppendUvarint(b, uint64(e.size[sectionContent]))
	b = append(b, e.checkpoints...)
	header := len(b)
	for _, numbers := range [][]uint64{e.template, e.sizes, e.explicitTargets} {
		for k := range width(numbers) {
			for _, v := range numbers {
				b = append(b, byte(v>>(8*k)))
			}
		}
	}
	return appendTrailer(append(b, e.data...), b[:header])
}

// width returns how many bytes the largest of some numbers needs.
func width(numbers []uint64) byte {
	all := uint64(0)
	for _, v := range numbers {
		all |= v
	}
	return byte(bits.Len64(all)+7) / 8
}
