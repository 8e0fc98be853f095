package bolt

import (
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestChainOfPackedManifestsHasTheirData: the table of a pack has the data of commits only;
// that of other kinds is in the body.
func TestChainOfPackedManifestsHasTheirData(t *testing.T) {
	s, err := objects.Open(t.Context(), filepath.Join(t.TempDir(), "store"), objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var chain []objects.Object
	var parents []objects.ID
	for _, data := range []string{"first manifest", "second manifest", "third manifest"} {
		o := objects.New(objects.KindManifest, parents, nil, []byte(data))
		chain, parents = append(chain, o), []objects.ID{o.ID}
	}
	tip := chain[len(chain)-1].ID
	if err := s.Apply(t.Context(), objects.Batch{Put: chain, Refs: []objects.RefUpdate{{Name: "refs/tags/requests", New: tip}}}); err != nil {
		t.Fatal(err)
	}
	m, _ := objects.As[objects.Maintainer](s)
	if _, err := m.Sweep(t.Context(), objects.Sweep{}); err != nil {
		t.Fatal(err)
	}
	at := len(chain)
	for o, err := range s.Chain(t.Context(), tip, objects.ChainOptions{}) {
		if at--; err != nil || at < 0 || string(o.Data) != string(chain[at].Data) {
			t.Fatalf("object %d: %q, %v", at, o.Data, err)
		}
	}
	if at != 0 {
		t.Errorf("%d objects are missing", at)
	}
}
