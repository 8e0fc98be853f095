package bolt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestWhatIsSaidAgainIsLaidDownOnce folds the same words again and again among new ones,
// by two stores at one path that take turns: whatever runs were joined meanwhile, and
// whoever wrote them, each object lies in one place.
func TestWhatIsSaidAgainIsLaidDownOnce(t *testing.T) {
	one, path := fresh(t)
	two, err := objects.Open(t.Context(), path, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }()
	said := map[objects.ID]bool{}
	for round := range 24 {
		s := []objects.Store{one, two}[round/3%2]
		var put []objects.Object
		for i := range 40 { // half of them have not been there before
			o := object(fmt.Sprint("said ", 20*round+i))
			said[o.ID] = true
			put = append(put, o)
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		fold(t, s)
	}
	in := idle(t, one)
	err = in.view(t.Context(), "read", func(l *look) error {
		all, err := l.runs()
		if err != nil {
			return err
		}
		entries := uint64(0)
		for _, r := range all.list {
			entries += r.entries
		}
		if entries != uint64(len(said)) {
			t.Errorf("the index has %d entries of %d objects", entries, len(said))
		}
		for id := range said {
			if _, ok, err := l.locate(id); !ok || err != nil {
				t.Errorf("object %s is not found, %v", id.Short(), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFoldReadsOfTheIndexWhatIsNew: a run that a fold has read is known to the next.
func TestAFoldReadsOfTheIndexWhatIsNew(t *testing.T) {
	s, _ := fresh(t)
	in := inner(t, s)
	for round := range 12 {
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{object(fmt.Sprint("round ", round))}}); err != nil {
			t.Fatal(err)
		}
		before := runsOf(t, idle(t, s))
		fold(t, s)
		for _, r := range before {
			if !in.known.runs[r] {
				t.Errorf("round %d: run %+v is not known", round, r)
			}
		}
		if len(in.known.runs) != len(before) {
			t.Errorf("round %d: %d runs are known of %d", round, len(in.known.runs), len(before))
		}
	}
}

func runsOf(t *testing.T, s *store) (list []run) {
	t.Helper()
	err := s.view(t.Context(), "read", func(l *look) error {
		all, err := l.runs()
		list = all.list
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestNothingThatIsKnownIsForgotten: an id that was added is there, however many came
// since, and few are that were not. Of another file nothing is.
func TestNothingThatIsKnownIsForgotten(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	id := func() (begin uint64) {
		var b [8]byte
		_, _ = random.Read(b[:])
		return binary.BigEndian.Uint64(b[:])
	}
	var k known
	var all []uint64
	for range 200 {
		k.follow(1, []run{{entries: uint64(len(all))}}, 300)
		for range 300 {
			all = append(all, id())
			k.add(all[len(all)-1])
		}
	}
	for _, begin := range all {
		if !k.has(begin) {
			t.Fatalf("%x is forgotten", begin)
		}
	}
	wrong := 0
	for range 20_000 {
		if k.has(id()) {
			wrong++
		}
	}
	if wrong > 400 {
		t.Errorf("of 20000 that were not added %d are there", wrong)
	}
	k.follow(2, nil, 300)
	for _, begin := range all[:300] {
		if k.has(begin) {
			t.Fatalf("%x is of another file", begin)
		}
	}
}
