package bolt

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// drawObjects draws objects that name one another and others.
func drawObjects(t *rapid.T) (list []objects.Object) {
	known := []objects.ID{{1}, {2}}
	edges := func(label string) (ids []objects.ID) {
		for range rapid.IntRange(0, 4).Draw(t, label) {
			ids = append(ids, rapid.SampledFrom(known).Draw(t, "edge"))
		}
		return ids
	}
	for i := range rapid.IntRange(1, 60).Draw(t, "objects") {
		kind := objects.Kind(rapid.IntRange(1, 8).Draw(t, "kind"))
		data := append(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"), byte(i))
		o := objects.New(kind, edges("parents"), edges("links"), data)
		if list = append(list, o); len(known) < 300 {
			known = append(known, o.ID)
		}
	}
	return list
}

func same(a, b objects.Object) bool {
	return a.ID == b.ID && a.Kind == b.Kind && slices.Equal(a.Parents, b.Parents) && slices.Equal(a.Links, b.Links) && bytes.Equal(a.Data, b.Data)
}

func TestPackRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawObjects(t)
		head, body := encodePack(7, list)
		p, err := parsePack(7, head)
		if err != nil || !p.sound || len(p.slots) != len(list) || p.bodies != len(body)-bodyStart {
			t.Fatalf("%v, %+v", err, p)
		}
		var room []objects.ID
		for i, want := range list {
			got, err := p.whole(i, body[bodyStart:], true, nil, &room)
			if err != nil || !same(got, want) {
				t.Fatalf("object %d: %+v, %v; want %+v", i, got, err, want)
			}
			for what, at := range map[int][]objects.ID{p.parent(i): want.Parents, p.link(i): want.Links} {
				if what >= 0 && (len(at) == 0 || list[what].ID != at[0]) {
					t.Fatalf("object %d leads to object %d, and not to %v", i, what, at)
				}
			}
		}
		if p, err := parsePack(8, head); err == nil && p.sound {
			t.Fatal("a pack in the place of another seems sound")
		}
	})
}

// TestPackWithAFlippedBit is read or refused, and gives no wrong object.
func TestPackWithAFlippedBit(t *testing.T) {
	var list []objects.Object
	var tip []objects.ID
	for i := range 20 {
		c := object(fmt.Sprint("content ", i))
		k := objects.New(objects.KindCommit, tip, []objects.ID{c.ID, {9}}, fmt.Append(nil, i))
		list, tip = append(list, c, k), []objects.ID{k.ID}
	}
	head, body := encodePack(1, list)
	for bit := range len(head) * 8 {
		bad := bytes.Clone(head)
		bad[bit/8] ^= 1 << (bit % 8)
		p, err := parsePack(1, bad)
		if err != nil {
			continue
		}
		if p.sound {
			t.Fatalf("bit %d: the checksum is right", bit)
		}
		if p.bodies != len(body)-bodyStart {
			continue // who reads the body sees that
		}
		var room []objects.ID
		for i := range p.slots {
			o, err := p.whole(i, body[bodyStart:], true, nil, &room)
			if o.Kind == objects.KindCommit {
				err = o.Check() // as who walks over it does
			}
			if err == nil && !same(o, list[i]) {
				t.Fatalf("bit %d: object %d is %+v", bit, i, o)
			}
		}
	}
}

func FuzzPack(f *testing.F) {
	head, _ := encodePack(1, []objects.Object{object("a"), objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{object("a").ID}, []byte("k"))})
	f.Add(head)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePack(1, b)
		if err != nil {
			return
		}
		var room []objects.ID
		for i := range p.slots {
			o := p.object(i, &room)
			if k := p.parent(i); k >= i || k < -1 || k >= 0 && p.id(k) != o.Parents[0] {
				t.Fatalf("object %d: parent %d", i, k)
			}
			if k := p.link(i); k >= i || k < -1 || k >= 0 && p.id(k) != o.Links[0] {
				t.Fatalf("object %d: link %d", i, k)
			}
		}
	})
}

func TestObjectsLieInLines(t *testing.T) {
	var list []objects.Object
	tips := map[string][]objects.ID{}
	for i := range 40 { // two branches in turn
		name := fmt.Sprint("branch ", i%2)
		c := object(fmt.Sprint(name, i))
		k := objects.New(objects.KindCommit, tips[name], []objects.ID{c.ID}, fmt.Append(nil, name, i))
		list, tips[name] = append(list, k, c), []objects.ID{k.ID}
	}
	loner := objects.New(objects.KindTools, nil, nil, []byte("tools"))
	ordered := inLines(append([]objects.Object{loner}, list...))
	if len(ordered) != len(list)+1 || ordered[len(list)].ID != loner.ID {
		t.Fatalf("%d objects of %d", len(ordered), len(list)+1)
	}
	for i := 2; i < len(list); i += 2 {
		if ordered[i].ID != ordered[i+1].Links[0] {
			t.Errorf("object %d is not the content of the commit after it", i)
		}
		if i != 40 && ordered[i+1].Parents[0] != ordered[i-1].ID {
			t.Errorf("commit %d does not follow its parent", i+1)
		}
	}
	for _, run := range cut(ordered) {
		if len(run) > packObjects {
			t.Errorf("a pack of %d objects", len(run))
		}
	}
}
