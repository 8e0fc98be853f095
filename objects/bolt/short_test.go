package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// shortLine is a line of commits with what they say and where it came from, and a branch
// of it.
func shortLine(commits int) (list []objects.Object) {
	var tip, from []objects.ID
	for i := range commits {
		c := object(fmt.Sprintf("what is said as the %d. of them, and of no other", i))
		o := objects.New(objects.KindOrigin, nil, nil, fmt.Append(nil, "origin ", i))
		k := objects.New(objects.KindCommit, tip, []objects.ID{c.ID, o.ID}, fmt.Append(nil, "commit ", i))
		if list, tip = append(list, c, o, k), []objects.ID{k.ID}; i == commits/3 {
			from = tip
		}
		if i == 2*commits/3 {
			tip = from
		}
	}
	return list
}

// idPlace is where in a head the id of an object lies, or of the next that has one.
func idPlace(t testing.TB, n uint32, head []byte, slot int) int {
	t.Helper()
	p, err := parsePack(n, head)
	if err != nil {
		t.Fatal(err)
	}
	at := packIDs + slot*idSize
	if p.short {
		out, _ := leftOut(p.Sheet)
		for _, without := range out[:slot] {
			if without {
				at -= idSize
			}
		}
	}
	return at
}

// TestShortHead is a third shorter, keeps the ids of what is said and of the last of
// every line, and gives all of them.
func TestShortHead(t *testing.T) {
	list := shortLine(300)
	long, _ := encodePack(1, list, codecZstd)
	head, body := encodePackAs(1, list, codecZstd, true)
	f := frontOf(head)
	if saved := len(long) - len(head); f.out < 270 || f.out > 290 || saved < f.out*idSize-50 {
		t.Errorf("of 300 commits %d are without an id, which saves %d bytes", f.out, saved)
	}
	p, err := parsePack(1, head)
	if err != nil || !p.sound || !p.short || p.lost > 0 {
		t.Fatalf("%v, %+v", err, p)
	}
	out, _ := leftOut(p.Sheet)
	since := 0
	for i, o := range list {
		if o.ID != p.id(i) {
			t.Fatalf("object %d is %s, want %s", i, p.id(i).Short(), o.ID.Short())
		}
		if since++; !out[i] && o.Kind == objects.KindCommit {
			since = 0
		}
		if out[i] && o.Kind != objects.KindCommit || since > 3*leaveOut {
			t.Errorf("object %d, a %s, is without an id", i, o.Kind)
		}
	}
	for _, i := range []int{2*300/3*3 + 2, len(list) - 1} {
		if out[i] {
			t.Errorf("the last of a line, object %d, is without an id", i)
		}
	}
	if found := salvaged(t, head, body); len(found) != len(list) {
		t.Errorf("%d objects of %d are found with nothing damaged", len(found), len(list))
	}
}

// TestShortHeadThatIsDamaged in more than a bit gives nothing that is wrong, and all ids
// that are proven.
func TestShortHeadThatIsDamaged(t *testing.T) {
	list := shortLine(60)
	r := rand.New(rand.NewPCG(4, 2))
	most, read := 0, 0
	for _, c := range []codec{codecRaw, codecZstd} {
		head, body := encodePackAs(1, list, c, true)
		for range 1500 {
			bad := bytes.Clone(head)
			for range 2 {
				bit := r.IntN(8 * len(bad))
				bad[bit/8] ^= 1 << (bit % 8)
			}
			wantNothingWrong(t, "two bits of a short head", list, bad, body)
			if p, err := parsePack(1, bad); err == nil && p.Len() == len(list) {
				read++
				most = max(most, p.lost)
			}
			for id, o := range salvaged(t, bad, body) {
				if !has(list, id) {
					t.Fatalf("%s %s is found, and never was there: %q", o.Kind, id.Short(), o.Data)
				}
			}
		}
	}
	if read < 500 || most == 0 || most > 4*leaveOut {
		t.Errorf("%d of 3000 heads were read, and one had lost %d ids", read, most)
	}
}

func has(list []objects.Object, id objects.ID) bool {
	for i := range list {
		if list[i].ID == id {
			return true
		}
	}
	return false
}

// TestIDsComeBackFromASoundBody where a sector of them is gone: each follows from what is
// said, and is proven by the next that is there. Only what leads to the last of a line,
// from the last before it that has its id, is lost with the sector of that one.
func TestIDsComeBackFromASoundBody(t *testing.T) {
	list := shortLine(200)
	head, body := encodePackAs(1, list, codecZstd, true)
	end, short := frontOf(head).end, 0
	for from := packIDs; from < end-512; from += 700 {
		bad := bytes.Clone(head)
		clear(bad[from : from+512])
		found := salvaged(t, bad, body)
		if len(found) < len(list) {
			short++
		}
		if len(found) < len(list)-3*leaveOut {
			t.Errorf("without the ids from byte %d on %d objects of %d are found", from, len(found), len(list))
		}
		worse := bytes.Clone(body)
		worse[len(worse)/2] ^= 1
		worse[len(worse)/2+1] ^= 1
		for id := range salvaged(t, bad, worse) {
			if !has(list, id) {
				t.Fatalf("object %s is found, and never was there", id.Short())
			}
		}
	}
	if short > 2 {
		t.Errorf("of %d sectors %d cost something", (end-packIDs)/700, short)
	}
}

// TestWordsThatAreLostLeaveTheCommits of a short pack as they were.
func TestWordsThatAreLostLeaveTheCommits(t *testing.T) {
	list := shortLine(100)
	head, body := encodePackAs(1, list, codecRaw, true)
	body[bodyStart+500] ^= 1
	body[bodyStart+501] ^= 1
	if found := salvaged(t, head, body); len(found) != len(list)-1 {
		t.Errorf("%d objects of %d are found where one is damaged", len(found), len(list))
	}
}

// TestHeadsAreShortWhileTheStoreIsSmall packs a conversation that grows: as long as it is
// small a pack is taken over as it is, and then its ids are written down.
func TestHeadsAreShortWhileTheStoreIsSmall(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(7, 7))
	var tip objects.ID
	for i := range 300 {
		said := make([]byte, 2000)
		for k := range said {
			said[k] = byte(r.Uint32())
		}
		c := object(string(said))
		k := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, fmt.Append(nil, "commit ", i))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tip = k.ID
	}
	first := func(short bool) (body []byte) {
		t.Helper()
		err := inner(t, s).view(t.Context(), "read", func(l *look) error {
			p, err := l.pack(1)
			if err != nil {
				return err
			}
			if p.short != short {
				t.Errorf("of %d objects, is the head of the first pack short: %t", p.Len(), p.short)
			}
			body, err = l.closedBody(p)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(body)
	}
	sweep(t, s, objects.Sweep{})
	before := first(true)
	sweep(t, s, objects.Sweep{})
	if !bytes.Equal(first(true), before) {
		t.Error("the body of a pack that is as it should be was written anew")
	}
	wantFound(t, s, idsOf(t, path))
	line(t, s, "more", bareObjects/2)
	first(true)
	sweep(t, s, objects.Sweep{})
	first(false)
	wantFound(t, s, idsOf(t, path))
}

// TestFrontThatNoHeadHas reads what says of itself that more ids are left out than it has
// objects, or that it has more than a head can: text is often so, and recover, which tries
// every piece of a file, must not make room for thousands of objects each time.
func TestFrontThatNoHeadHas(t *testing.T) {
	for _, front := range [][2]uint16{{10, 11}, {24937, 28160}, {packObjects + 1, packObjects + 1}} {
		b := make([]byte, 8, packIDs)
		b = binary.BigEndian.AppendUint16(b, front[0])
		b = binary.BigEndian.AppendUint16(b, front[1])
		b = binary.BigEndian.AppendUint32(b, 0)
		if _, ok := newScrapHead(1, b); ok {
			t.Errorf("%d objects, %d without an id: a head", front[0], front[1])
		}
		if _, err := parsePack(1, b); !errors.Is(err, errPack) {
			t.Errorf("%d objects, %d without an id: %v", front[0], front[1], err)
		}
	}
}
