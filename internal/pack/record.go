package pack

import (
	"encoding/binary"
	"errors"

	"github.com/tract-vcs/tract/internal/hugepage"
	"github.com/tract-vcs/tract/objects"
)

// AppendRecord appends an object that is stored alone, without its id: its kind, the number of
// its parents and the parents, the number of its links and the links, its data.
func AppendRecord(b []byte, o *objects.Object) []byte {
	b = append(b, byte(o.Kind))
	for _, ids := range [...][]objects.ID{o.Parents, o.Links} {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for i := range ids {
			b = append(b, ids[i][:]...)
		}
	}
	return append(b, o.Data...)
}

// ParseRecord decodes what AppendRecord appended. The data is a part of b, and the edges are
// taken from room. The id is zero.
func ParseRecord(b []byte, room *[]objects.ID) (o objects.Object, err error) {
	if len(b) == 0 || !objects.Kind(b[0]).Valid() {
		return o, errors.New("its record begins with no kind")
	}
	o.Kind, b = objects.Kind(b[0]), b[1:]
	for _, edges := range [...]*[]objects.ID{&o.Parents, &o.Links} {
		n, size := binary.Uvarint(b)
		if size <= 0 || size > 1 && b[size-1] == 0 || n > objects.MaxEdges {
			return o, errors.New("its record has no sound number of parents or links")
		}
		if b = b[size:]; uint64(len(b)) < n*uint64(len(objects.ID{})) {
			return o, errors.New("its record is cut off")
		}
		if n > 0 {
			*edges = hugepage.Take(room, int(n))
		}
		for i := range *edges {
			b = b[copy((*edges)[i][:], b):]
		}
	}
	if len(b) > objects.MaxSize {
		return o, errors.New("its record is too long")
	}
	o.Data = b
	return o, nil
}
