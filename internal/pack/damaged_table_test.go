package pack

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// tableParts are the header of a table, and the columns and data behind it.
type tableParts struct{ header, rest []byte }

func cutTable(b []byte) tableParts {
	end := len(b) - 4
	size := int(binary.BigEndian.Uint32(b[end:]))
	return tableParts{bytes.Clone(b[:size]), bytes.Clone(b[size : end-size])}
}

func (b tableParts) join() []byte {
	return binary.BigEndian.AppendUint32(slices.Concat(b.header, b.rest, b.header), uint32(len(b.header)))
}

// TestChangedTables changes bytes of a table, in both copies of its header alike: whatever
// is parsed refers to bytes inside of it and to objects before it, and nothing overlaps.
func TestChangedTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := unique(drawStory(t).put)
		if rapid.Bool().Draw(t, "long") {
			list = append(list, unlikeOthers()...)
		}
		ids, table, _ := EncodeTable(list, 0)
		s, err := ParseTable(len(list), ids, table, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantSense(t, list, s)
		lies := cutTable(table)
		for range rapid.IntRange(1, 3).Draw(t, "lies") {
			part := lies.header
			if len(lies.rest) > 0 && rapid.Bool().Draw(t, "after the header") {
				part = lies.rest
			}
			part[rapid.IntRange(0, len(part)-1).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		}
		if s, err := ParseTable(len(list), ids, lies.join(), nil); err == nil {
			wantSense(t, list, s)
		}
	})
}

// unique returns a list without repeated objects.
func unique(list []objects.Object) (rest []objects.Object) {
	seen := map[objects.ID]bool{}
	for i := range list {
		if id := list[i].ID; !seen[id] {
			rest, seen[id] = append(rest, list[i]), true
		}
	}
	return rest
}

// unlikeOthers is objects each of which takes more of a table than most.
func unlikeOthers() (list []objects.Object) {
	var links []objects.ID
	for i := range 200 {
		links = append(links, objects.ID{1, byte(i)})
	}
	list = append(list, objects.New(objects.KindList, nil, links, []byte("many")))
	for _, size := range []int{300, 0x12345, 0xfedcb} {
		list = append(list, objects.New(objects.KindContent, nil, nil, bytes.Repeat([]byte("w"), size)))
	}
	return append(list, objects.New(objects.KindOrigin, nil, links[:1], []byte("one")))
}

// wantSense reads everything of a table, right or wrong.
func wantSense(t *rapid.T, list []objects.Object, s *Table) {
	places := map[objects.ID]int{}
	for i := range list {
		places[list[i].ID] = i
	}
	wantPlace := func(i, place int, id *objects.ID) {
		at, ok := places[*id]
		if !ok {
			at = -1
		}
		if at >= i || at != place {
			t.Fatalf("object %d leads to %d, which is at %d", i, place, at)
		}
	}
	var room []objects.ID
	body := make([]bool, s.BodySize())
	for i := range s.Len() {
		from, to := s.Edges(i, &room)
		if len(from) > 0 {
			wantPlace(i, s.Parent(i), &from[0])
		}
		if len(to) > 0 {
			wantPlace(i, s.Link(i), &to[0])
		}
		for _, id := range slices.Concat(from, to) {
			if at, ok := places[id]; ok && at >= i {
				t.Fatalf("object %d leads to %d", i, at)
			}
		}
		if s.Kind(i) == objects.KindCommit {
			_ = s.Object(i, &room) // callers hash it
			continue
		}
		begin, size := s.Data(i)
		for k := begin; k < begin+size; k++ {
			if body[k] {
				t.Fatalf("byte %d of the body is of object %d, and of another", k, i)
			}
			body[k] = true
		}
	}
	if slices.Contains(body, false) {
		t.Fatal("bytes of the body are of no object")
	}
}

// TestContradictingTables changes one copy of the header, and the checkpoints: the table is
// refused.
func TestContradictingTables(t *testing.T) {
	list := plainLine(t, 150)
	ids, table, _ := EncodeTable(list, 0)
	refused := func(what string, at int, b []byte) {
		if _, err := ParseTable(len(list), ids, b, nil); err == nil {
			t.Errorf("%s: byte %d is another, and the table is parsed", what, at)
		}
	}
	header := len(cutTable(table).header)
	for at := range table {
		if at < header || at >= len(table)-header-4 {
			b := bytes.Clone(table)
			b[at] ^= 1
			refused("one header, or its length", at, b)
		}
	}
	const counts = 5
	for at := header - counts*((len(list)-1)/64); at < header; at++ {
		for bit := range 7 { // of numbers of one byte or more, no matter of which
			b := cutTable(table)
			b.header[at] ^= 1 << bit
			refused("a checkpoint", at, b.join())
		}
	}
}
