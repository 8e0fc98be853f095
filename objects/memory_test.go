package objects_test

import (
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

func TestMemoryConformance(t *testing.T) {
	objectstest.Run(t, objectstest.Engine{Open: func(*testing.T) objects.Store { return objects.Memory() }})
}

// TestUpdateRetriesAfterAnotherWriter moves the ref while f runs, as another writer may: f is called
// again.
func TestUpdateRetriesAfterAnotherWriter(t *testing.T) {
	const ref = "refs/heads/main"
	s := objects.Memory()
	first, second := objects.New(objects.KindContent, nil, nil, []byte("1")), objects.New(objects.KindContent, nil, nil, []byte("2"))
	move := func(from objects.ID, to objects.Object) objects.Batch {
		return objects.Batch{Put: []objects.Object{to}, Refs: []objects.RefUpdate{{Name: ref, Old: from, New: to.ID}}}
	}
	var tips []objects.ID
	err := s.Update(t.Context(), ref, func(tip objects.ID) (objects.Batch, error) {
		if tips = append(tips, tip); len(tips) == 1 {
			if err := s.Apply(t.Context(), move(tip, first)); err != nil {
				t.Error(err)
			}
		}
		return move(tip, second), nil
	})
	at, readErr := objects.ReadRef(t.Context(), s, ref)
	if err != nil || readErr != nil || !slices.Equal(tips, []objects.ID{{}, first.ID}) || at.Target != second.ID {
		t.Errorf("%v, %v: asked at %v, and the ref is at %s", err, readErr, tips, at.Target.Short())
	}
}
