package bolt

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// siftAll is what Sift gives: the ids in their order, and the first error.
func siftAll(t testing.TB, s objects.Store, may func([]byte) bool, tips ...objects.ID) (list []objects.Object, first error) {
	t.Helper()
	for o, err := range objects.Sift(t.Context(), s, tips, may) {
		if err == nil {
			list = append(list, o)
		} else if first == nil {
			first = err
		}
	}
	return list, first
}

// TestSiftIsAWalkThatLeavesOut holds it to what a walk gives, over histories that
// lie in packs, in the journal and alone, and meet again and again.
func TestSiftIsAWalkThatLeavesOut(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		s, _ := fresh(t)
		tips := []objects.ID{}
		var said []objects.Object
		for range 4 + r.IntN(6) {
			var b objects.Batch
			for range 1 + r.IntN(400) {
				o := object(strconv.Itoa(r.IntN(5000)))
				switch r.IntN(12) {
				case 0:
					o = object(strconv.Itoa(r.IntN(5000)) + string(bytes.Repeat([]byte("z"), looseSize)))
				case 1:
					o = objects.New(objects.KindList, nil, nil, []byte("list"))
				case 2:
					if len(said) > 0 {
						o = said[r.IntN(len(said))]
					}
				}
				said = append(said, o)
				var parents []objects.ID
				at := 0
				if len(tips) > 0 {
					at = r.IntN(1 + r.IntN(len(tips)))
					parents = append(parents, tips[at])
				}
				for r.IntN(40) == 0 && len(tips) > 0 {
					parents = append(parents, tips[r.IntN(len(tips))])
				}
				links := []objects.ID{o.ID}
				if r.IntN(9) == 0 {
					links = nil
				}
				c := objects.New(objects.KindCommit, parents, links, []byte(strconv.Itoa(len(said))))
				b.Put = append(b.Put, o, c)
				if len(tips) == 0 || r.IntN(60) == 0 {
					tips = append(tips, c.ID)
				} else {
					tips[at] = c.ID
				}
			}
			if err := s.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if r.IntN(2) > 0 {
				fold(t, s)
			}
		}
		r.Shuffle(len(tips), func(i, k int) { tips[i], tips[k] = tips[k], tips[i] })
		for _, text := range []string{"", "7", "77", "777", "z", "nowhere"} {
			may := func(data []byte) bool { return bytes.Contains(data, []byte(text)) }
			want, errWant := siftAll(t, struct{ objects.Store }{s}, may, tips...)
			got, err := siftAll(t, s, may, tips...)
			if err != nil || errWant != nil || !slices.EqualFunc(got, want, same) {
				t.Fatalf("seed %d, %q: %d objects, %v; want %d, %v", seed, text, len(got), err, len(want), errWant)
			}
		}
	}
}

// TestSiftOfDamage: it leaves nothing out without a word.
func TestSiftOfDamage(t *testing.T) {
	path, m := large(t, 400)
	whole := takeFiles(t, path)
	r := rand.New(rand.NewPCG(3, 5))
	noticed := 0
	may := func(data []byte) bool { return bytes.Contains(data, []byte("99")) }
	var want []objects.Object
	for try := range rounds(60, 150, 5000) {
		s := mustOpen(t, path, objects.Options{})
		got, err := siftAll(t, s, may, m.tip)
		if cerr := s.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		switch {
		case try == 0 && (err != nil || len(got) != 8):
			t.Fatalf("%d objects, %v", len(got), err)
		case try == 0:
			want = got
		case err != nil:
			wantTyped(t, "sift", err)
			noticed++
		case !slices.EqualFunc(got, want, same):
			t.Fatalf("try %d: %d objects of %d", try, len(got), len(want))
		}
		whole.put(t)
		b := bytes.Clone(whole[path])
		at := int(minPageSize)*8 + r.IntN(len(b)-int(minPageSize)*8)
		b[at] ^= 1 << r.IntN(8)
		storeFiles{path: b}.put(t)
	}
	if noticed < 5 {
		t.Errorf("only %d flipped bits were met", noticed)
	}
}
