package objects_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestABatchThatIsCheckedAhead: what is wrong is found ahead, what is right is not looked
// at again, and other objects in the place of those that were checked are.
func TestABatchThatIsCheckedAhead(t *testing.T) {
	store, err := objects.Open(context.Background(), "mem:", objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	said := func(words string) objects.Object { return objects.New(objects.KindContent, nil, nil, []byte(words)) }
	wrong := said("right")
	wrong.Data = bytes.ToUpper(wrong.Data)
	b := objects.Batch{Put: []objects.Object{said("a"), wrong}}
	var corrupt *objects.CorruptError
	if err := b.CheckAhead(); !errors.As(err, &corrupt) || corrupt.ID != wrong.ID {
		t.Errorf("ahead: %v", err)
	}
	if err := store.Apply(t.Context(), b); !errors.As(err, &corrupt) {
		t.Errorf("what was found wrong ahead: %v", err)
	}
	b.Put = []objects.Object{said("a"), said("b")}
	if err := b.CheckAhead(); err != nil {
		t.Fatal(err)
	}
	for _, put := range [][]objects.Object{{said("a"), wrong}, {wrong}, {said("a"), said("b"), wrong}} {
		other := b
		other.Put = put
		if err := store.Apply(t.Context(), other); !errors.As(err, &corrupt) {
			t.Errorf("others than were checked: %v", err)
		}
	}
	b.Put = append(slices.Grow(b.Put, 2), said("c")) // elsewhere
	if err := b.CheckAhead(); err != nil {
		t.Fatal(err)
	}
	for _, last := range []objects.Object{wrong, said("d")} { // in the same memory
		b.Put = append(b.Put[:3], last)
		if err := b.CheckAhead(); errors.As(err, &corrupt) != (last.ID == wrong.ID) {
			t.Errorf("one more than was checked: %v", err)
		}
	}
	if err := store.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
	if o, err := objects.Read(t.Context(), store, b.Put[1].ID); err != nil || string(o.Data) != "b" {
		t.Errorf("%q, %v", o.Data, err)
	}
}

// TestABatchThatGrowsAfterItWasChecked: what is put behind the objects that were checked, in
// the same memory, is looked at.
func TestABatchThatGrowsAfterItWasChecked(t *testing.T) {
	store := objects.Memory()
	said := func(words string) objects.Object { return objects.New(objects.KindContent, nil, nil, []byte(words)) }
	wrong := said("right")
	wrong.Data = bytes.ToUpper(wrong.Data)
	b := objects.Batch{Put: make([]objects.Object, 0, 2)}
	b.Put = append(b.Put, said("a"))
	if err := b.CheckAhead(); err != nil {
		t.Fatal(err)
	}
	grown := b
	grown.Put = append(grown.Put, wrong)
	var corrupt *objects.CorruptError
	if err := store.Apply(t.Context(), grown); &grown.Put[0] != &b.Put[0] || !errors.As(err, &corrupt) || corrupt.ID != wrong.ID {
		t.Errorf("a batch that grew: %v", err)
	}
	if ids, err := store.Missing(t.Context(), []objects.ID{wrong.ID}); err != nil || len(ids) != 1 {
		t.Errorf("what is wrong is there: %v, %v", ids, err)
	}
	if err := store.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
}
