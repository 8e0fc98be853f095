package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
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
		head, body := encodePack(7, list, rapid.SampledFrom([]codec{codecRaw, codecZstd}).Draw(t, "codec"))
		p, err := parsePack(nil, 7, head)
		if err != nil || !p.sound || p.Len() != len(list) {
			t.Fatalf("%v, %+v", err, p)
		}
		data, sound, err := decodeBody(nil, p, body)
		if err != nil || !sound {
			t.Fatalf("the body: %v, sound: %v", err, sound)
		}
		var room []objects.ID
		for i, want := range list {
			got, err := verified(p.objectWith(i, data, &room))
			if err != nil || !same(got, want) {
				t.Fatalf("object %d: %+v, %v; want %+v", i, got, err, want)
			}
			for what, at := range map[int][]objects.ID{p.Parent(i): want.Parents, p.Link(i): want.Links} {
				if what >= 0 && (len(at) == 0 || list[what].ID != at[0]) {
					t.Fatalf("object %d leads to object %d, and not to %v", i, what, at)
				}
			}
		}
		if p, err := parsePack(nil, 8, head); err == nil && p.sound {
			t.Fatal("a pack in the place of another seems sound")
		}
	})
}

// TestPackWithAFlippedBit is read whole when it is in the head; else it is read or
// refused, and gives no wrong object.
func TestPackWithAFlippedBit(t *testing.T) {
	var list []objects.Object
	var tip []objects.ID
	for i := range 20 {
		c := object(fmt.Sprint("content ", i))
		k := objects.New(objects.KindCommit, tip, []objects.ID{c.ID, {9}}, fmt.Append(nil, "commit ", i))
		list, tip = append(list, c, k), []objects.ID{k.ID}
	}
	for _, c := range []codec{codecRaw, codecZstd} {
		head, body := encodePack(1, list, c)
		if closed := binary.BigEndian.Uint16(head[8:])&packZstd != 0 && codec(body[8]) == codecZstd; closed != (c == codecZstd) {
			t.Fatalf("codec %d: in zstd: %t", c, closed)
		}
		for bit := range len(head) * 8 {
			bad := bytes.Clone(head)
			bad[bit/8] ^= 1 << (bit % 8)
			wantAllMended(t, fmt.Sprintf("codec %d, bit %d of the head", c, bit), list, bad, body)
		}
		for bit := range len(body) * 8 {
			bad := bytes.Clone(body)
			bad[bit/8] ^= 1 << (bit % 8)
			wantNothingWrong(t, fmt.Sprintf("codec %d, bit %d of the body", c, bit), list, head, bad)
		}
	}
}

// wantAllMended reads a pack of whose head one bit is wrong.
func wantAllMended(t *testing.T, what string, list []objects.Object, head, body []byte) {
	t.Helper()
	p, err := parsePack(nil, 1, head)
	if err != nil || p.sound || p.Len() != len(list) {
		t.Fatalf("%s: %v, %+v", what, err, p)
	}
	data, _, err := decodeBody(nil, p, body)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var room []objects.ID
	for i := range list {
		o, err := verified(p.objectWith(i, data, &room))
		if err != nil || !same(o, list[i]) {
			t.Fatalf("%s: object %d is %+v, %v", what, i, o, err)
		}
	}
}

// wantNothingWrong reads a pack that is damaged as those do who read one.
func wantNothingWrong(t *testing.T, what string, list []objects.Object, head, body []byte) {
	t.Helper()
	p, err := parsePack(nil, 1, head)
	if err != nil {
		return
	}
	data, sound, err := decodeBody(nil, p, body)
	if err != nil {
		return
	}
	if sound && p.sound {
		t.Fatalf("%s: both checksums are right", what)
	}
	var room []objects.ID
	for i := range p.Len() {
		o, err := verified(p.objectWith(i, data, &room))
		if err == nil && !same(o, list[i]) {
			t.Fatalf("%s: object %d is %+v", what, i, o)
		}
	}
}

// TestSalvageOfAHeadWithAnOverwrittenSector finds the objects on both sides of a sector that was
// overwritten.
func TestSalvageOfAHeadWithAnOverwrittenSector(t *testing.T) {
	var list []objects.Object
	var tip []objects.ID
	for i := range 400 {
		c := object(fmt.Sprintf("content %d%s", i, bytes.Repeat([]byte{'.'}, i%7)))
		k := objects.New(objects.KindCommit, tip, []objects.ID{c.ID}, fmt.Append(nil, "commit ", i))
		list, tip = append(list, c, k), []objects.ID{k.ID}
	}
	head, body := encodePack(1, list, codecRaw)
	all := map[objects.ID]bool{}
	for _, o := range list {
		all[o.ID] = true
	}
	ids := packIDs + len(list)*idSize
	for _, from := range []int{ids, ids + 100, ids + 700, ids + 1300, ids + 3000, packIDs + 5000} {
		bad := bytes.Clone(head)
		clear(bad[from:min(from+512, len(bad))])
		if p, err := parsePack(nil, 1, bad); err == nil && p.sound {
			t.Fatal("it is sound")
		}
		found := map[objects.ID]bool{}
		for o := range salvaged(t, bad, body) {
			found[o] = true
		}
		if len(found) < len(list)*3/10 {
			t.Errorf("%d objects of %d are found beside 512 bytes of zeros from %d on", len(found), len(list), from-ids)
		}
		t.Logf("from %d: %d of %d", from-ids, len(found), len(list))
	}
}

// salvaged returns what is found of pack 1 in two values of it, one of which is damaged.
func salvaged(t testing.TB, head, body []byte) map[objects.ID]objects.Object {
	t.Helper()
	found := map[objects.ID]objects.Object{}
	repairFlip := func(b []byte) []byte { return checksum.Repair(packKey(1), b) }
	salvageObjects(repairFlip(head), repairFlip(body), func(list []objects.Object) {
		for _, o := range list {
			if o.Check() != nil {
				t.Fatalf("object %s is another", o.ID.Short())
			}
			found[o.ID] = o
		}
	})
	return found
}

func FuzzPack(f *testing.F) {
	list := []objects.Object{object("a"), objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{object("a").ID}, []byte("k"))}
	for range 20 {
		list = append(list, object("again and again"))
	}
	for _, c := range []codec{codecRaw, codecZstd} {
		head, _ := encodePack(1, list, c)
		f.Add(head)
		head, _ = encodePack(1, lineOfObjects(20), c)
		f.Add(head)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePack(nil, 1, b)
		if err != nil {
			return
		}
		var room []objects.ID
		for i := range p.Len() {
			o := p.Object(i, &room)
			if k := p.Parent(i); k >= i || k < -1 || k >= 0 && *p.ID(k) != o.Parents[0] {
				t.Fatalf("object %d: parent %d", i, k)
			}
			if k := p.Link(i); k >= i || k < -1 || k >= 0 && *p.ID(k) != o.Links[0] {
				t.Fatalf("object %d: link %d", i, k)
			}
		}
	})
}

func TestPacksHaveObjectsInHistoryOrder(t *testing.T) {
	var list []objects.Object
	tips := map[string][]objects.ID{}
	for i := range 40 { // two branches in turn
		name := fmt.Sprint("branch ", i%2)
		c := object(fmt.Sprint(name, i))
		k := objects.New(objects.KindCommit, tips[name], []objects.ID{c.ID}, fmt.Append(nil, name, i))
		list, tips[name] = append(list, k, c), []objects.ID{k.ID}
	}
	loner := objects.New(objects.KindTools, nil, nil, []byte("tools"))
	ordered := inHistoryOrder(append([]objects.Object{loner}, list...))
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
	for _, run := range splitPacks(ordered, youngLimits) {
		if len(run) > youngLimits.objects {
			t.Errorf("a pack of %d objects", len(run))
		}
	}
}

// TestOnlyLargeObjectsHaveAPackOfTheirOwn stores tool results and files of 2 to 30 KB, as agents do, and a
// large one: it has a pack of its own, before gc and after it, and so nobody unpacks it who reads what is
// beside it in the history.
func TestOnlyLargeObjectsHaveAPackOfTheirOwn(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(5, 6))
	var tip objects.ID
	put := func(size int) {
		t.Helper()
		c := object(fmt.Sprintf("%0*d", size, r.Uint64()))
		k := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, nil)
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tip = k.ID
	}
	const messages = 120
	for range messages {
		put(2<<10 + r.IntN(28<<10))
	}
	put(largeSize)
	count := func(when string) {
		t.Helper()
		large, objects := 0, 0
		err := inner(t, s).view(t.Context(), "count", func(l *snapshot) error {
			for e, err := range l.scanFile(headsBucket, nil, false) {
				if err != nil {
					return err
				}
				n, _ := packNumber(e.Key)
				p, err := l.pack(n)
				if err != nil {
					return err
				}
				objects += p.Len()
				for i := range p.Len() {
					if _, size := p.Data(i); size >= largeSize {
						if large++; p.Len() != 1 {
							t.Errorf("%s: a large object is in a pack of %d", when, p.Len())
						}
					}
				}
			}
			return nil
		})
		if found := entriesOfIndex(t, s); err != nil || large != 1 || objects != 2*messages+2 || int(found) != objects {
			t.Errorf("%s: %d large objects, %d in packs, %d in the index, %v", when, large, objects, found, err)
		}
	}
	mustCheckpoint(t, s)
	count("after a checkpoint")
	sweep(t, s, objects.Sweep{})
	count("after gc")
	wantClean(t, path)
}

// TestSalvageDoesNotRepairText checks that salvage looks for a flipped bit only in values that may
// be a part of a pack: a text of megabytes can look like thousands of values.
func TestSalvageDoesNotRepairText(t *testing.T) {
	if isPlausiblePackPart(bytes.Repeat([]byte("words words words\n"), 1000)) {
		t.Error("a text is taken for a part of a pack")
	}
	for _, c := range []codec{codecRaw, codecZstd} {
		head, body := encodePack(7, lineOfObjects(20), c)
		for _, part := range [][]byte{head, body} {
			flipped := bytes.Clone(part)
			flipped[len(flipped)-1] ^= 4
			if !isPlausiblePackPart(flipped) || !bytes.Equal(checksum.Repair(packKey(7), flipped), part) {
				t.Error("a part of a pack with a flipped bit is not repaired")
			}
		}
	}
}
