package compile

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt"
	"pgregory.net/rapid"
)

// told is a history that a test writes commit by commit.
type told struct {
	put []objects.Object
	all []*commit.Commit
	tip *commit.Commit
}

func (h *told) write(t rapid.TB, d commit.Draft) {
	d.Key.Text = fmt.Sprint(len(h.all)) // so that no commit comes twice
	commits, put, err := commit.Write(h.tip, d)
	if err != nil {
		t.Fatal(err)
	}
	h.put, h.tip = append(h.put, put...), commits[0]
	h.all = append(h.all, commits[0])
}

// keep puts a history into a store, most of it into packs.
func (h *told) keep(t *testing.T) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), filepath.Join(t.TempDir(), "store"), objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	cleaner, _ := objects.As[objects.Maintainer](s)
	late := len(h.put) * 9 / 10
	for _, put := range [][]objects.Object{h.put[:late], h.put[late:]} {
		if err := s.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		if _, err := cleaner.Sweep(t.Context(), objects.Sweep{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
