package bolt

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// TestSalvageOfDamagedElements flips every bit of the elements of the pages that hold
// the packs: one element says where some hundred objects lie, and they are not lost by
// it. Of a large object that is the last on its page nobody else knows the size.
func TestSalvageOfDamagedElements(t *testing.T) {
	path, m := large(t, 300)
	files := takeFiles(t, path)
	b := files[path]
	for at := 2 * 4096; at < len(b); at += 4096 {
		count := int(page.Order.Uint16(b[at+10:]))
		if page.Order.Uint64(b[at:]) != uint64(at/4096) || page.Order.Uint16(b[at+8:]) != page.LeafFlag || page.Order.Uint32(b[at+12:]) < 2 || count > 8 {
			continue
		}
		for bit := 8 * 8; bit < 8*(page.HeaderSize+count*page.ElementSize); bit += rounds(241, 241, 1) {
			damaged := append([]byte(nil), b...)
			damaged[at+bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := audit(t, path, true)
			if lost := m.lostIn(got); err != nil || lost > 1 {
				t.Errorf("bit %d of page %d: %d objects are lost, %v: %.300v", bit, at/4096, lost, err, got.damages)
			}
		}
	}
}

// lineOfObjects is a line of commits with their contents and origins, and a branch
// of it.
func lineOfObjects(commits int) (list []objects.Object) {
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

func has(list []objects.Object, id objects.ID) bool {
	for i := range list {
		if list[i].ID == id {
			return true
		}
	}
	return false
}

// TestSalvageRestoresIDsFromAnIntactBody zeroes a sector of ids. Each id is computed from the bytes
// of its object, and proven by an object that refers to it. Only the last commit of a branch is lost
// with the sector of its id.
func TestSalvageRestoresIDsFromAnIntactBody(t *testing.T) {
	const lost = 512 / idSize // ids in a sector
	list := lineOfObjects(200)
	head, body := encodePack(1, list, codecZstd)
	end, short := parsePackHeader(head).end, 0
	for from := packIDs; from < end-512; from += 700 {
		bad := bytes.Clone(head)
		clear(bad[from : from+512])
		found := salvaged(t, bad, body)
		if len(found) < len(list) {
			short++
		}
		if len(found) < len(list)-3*lost {
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

// TestDamagedContentLeavesTheCommits finds all objects but the one that is damaged.
func TestDamagedContentLeavesTheCommits(t *testing.T) {
	list := lineOfObjects(100)
	head, body := encodePack(1, list, codecRaw)
	body[bodyStart+500] ^= 1
	body[bodyStart+501] ^= 1
	if found := salvaged(t, head, body); len(found) != len(list)-1 {
		t.Errorf("%d objects of %d are found where one is damaged", len(found), len(list))
	}
}
