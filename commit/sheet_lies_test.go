package commit

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// table is that of a sheet, cut into its parts.
type table struct{ front, rest []byte }

func cutTable(b []byte) table {
	end := len(b) - 4
	size := int(binary.BigEndian.Uint32(b[end:]))
	return table{bytes.Clone(b[:size]), bytes.Clone(b[size : end-size])}
}

func (b table) join() []byte {
	return binary.BigEndian.AppendUint32(slices.Concat(b.front, b.rest, b.front), uint32(len(b.front)))
}

// TestSheetsThatLie changes what a sheet says, in both of its fronts alike: whatever is
// read of it lies in it, leads to what comes before, and is nobody else's.
func TestSheetsThatLie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := unique(drawStory(t).put)
		if rapid.Bool().Draw(t, "long") {
			list = append(list, unlikeOthers()...)
		}
		ids, laid, _ := objects.LaySheet(list, 0, nil)
		s, err := objects.OpenSheet(len(list), ids, laid, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantSense(t, list, s)
		lies := cutTable(laid)
		for range rapid.IntRange(1, 3).Draw(t, "lies") {
			part := lies.front
			if len(lies.rest) > 0 && rapid.Bool().Draw(t, "behind the front") {
				part = lies.rest
			}
			part[rapid.IntRange(0, len(part)-1).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		}
		if s, err := objects.OpenSheet(len(list), ids, lies.join(), nil); err == nil {
			wantSense(t, list, s)
		}
	})
}

// unique is a list without what comes again.
func unique(list []objects.Object) (rest []objects.Object) {
	seen := map[objects.ID]bool{}
	for i := range list {
		if id := list[i].ID; !seen[id] {
			rest, seen[id] = append(rest, list[i]), true
		}
	}
	return rest
}

// unlikeOthers is objects of which each needs more room in a sheet than most.
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

// wantSense reads all that a sheet says, true or not.
func wantSense(t *rapid.T, list []objects.Object, s *objects.Sheet) {
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
	body := make([]bool, s.Body())
	for i := range s.Len() {
		parents, links := s.Degree(s.Form(i))
		if parents > 0 {
			wantPlace(i, s.Parent(i), s.ID(s.Place(i, 0)))
		}
		if links > 0 {
			wantPlace(i, s.Link(i), s.ID(s.Place(i, parents)))
		}
		from, to := s.Edges(i, &room)
		for _, id := range slices.Concat(from, to) {
			if at, ok := places[id]; ok && at >= i {
				t.Fatalf("object %d leads to %d", i, at)
			}
		}
		if s.Kind(i) == objects.KindCommit {
			_ = s.Object(i, &room) // what it says is held against the id by others
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

// TestASheetThatSaysTwoThings: what stands in it twice is the same, and what it counts are
// as many.
func TestASheetThatSaysTwoThings(t *testing.T) {
	list := plainLine(t, 150)
	ids, laid, _ := objects.LaySheet(list, 0, nil)
	refused := func(what string, at int, b []byte) {
		if _, err := objects.OpenSheet(len(list), ids, b, nil); err == nil {
			t.Errorf("%s: byte %d is another, and the sheet is read", what, at)
		}
	}
	front := len(cutTable(laid).front)
	for at := range laid {
		if at < front || at >= len(laid)-front-4 {
			b := bytes.Clone(laid)
			b[at] ^= 1
			refused("one front, or its length", at, b)
		}
	}
	const counts = 5
	for at := front - counts*((len(list)-1)/64); at < front; at++ {
		for bit := range 7 { // of numbers of one byte or more, no matter of which
			b := cutTable(laid)
			b.front[at] ^= 1 << bit
			refused("what comes before an object", at, b.join())
		}
	}
}
