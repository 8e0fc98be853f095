package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// TestDamagedPackIsUnpackedOnce zeroes a sector of a packed body: walking the history with its
// content reports every object that is lost, and does not unpack the body for each of them.
func TestDamagedPackIsUnpackedOnce(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(1, 2))
	const commits = 600
	var tip objects.ID
	for i := range commits {
		c := object(fmt.Sprint(i, speech(r)))
		k := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, fmt.Appendf(nil, "commit %d", i))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tip = k.ID
	}
	sweep(t, s, objects.Sweep{})
	idle(t, s)
	var at int64
	err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
		e, err := l.packPart(bodiesBucket, 1)
		if err == nil {
			at = (e.Page().Offset + int64(e.ValueAt)) + int64(e.ValueSize)/2
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	b := mustRead(t, path)
	clear(b[at : at+512])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, objects.Options{ReadOnly: true})
	seen, lost := 0, 0
	for tip := tip; !tip.IsZero(); {
		k, err := objects.Read(t.Context(), s, tip)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Get(t.Context(), k.Links) {
			if errors.Is(err, objects.ErrCorrupt) {
				lost++
			}
		}
		seen++
		tip = objects.ID{}
		if len(k.Parents) > 0 {
			tip = k.Parents[0]
		}
	}
	for _, err := range objectstest.ChainWithContent(t.Context(), s, tip) {
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Fatal(err)
		}
	}
	if n := inner(t, s).bodies.unpacked; seen != commits || lost == 0 || n > 10 {
		t.Errorf("%d commits, %d contents are lost, and bodies were unpacked %d times", seen, lost, n)
	}
}

// TestZeroedRefsAreAnError zeroes 128 bytes at a time in every page with refs of a packed store:
// listing the refs returns all of them or an error.
func TestZeroedRefsAreAnError(t *testing.T) {
	for _, refs := range []int{1, 3, 60} {
		s, path := fresh(t)
		for i := range refs {
			apply(t, s, fmt.Sprint("refs/heads/branch-", i), fmt.Sprint("words ", i))
		}
		sweep(t, s, objects.Sweep{})
		idle(t, s)
		_ = s.Close()
		b := mustRead(t, path)
		m, err := page.ReadMeta(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		damaged := 0
		for id := 2; id < int(m.HighWater); id++ {
			one := b[id*m.PageSize : (id+1)*m.PageSize]
			if !bytes.Contains(one, []byte("refs/heads/branch-0")) && !bytes.Contains(one, []byte("recent")) {
				continue
			}
			for from := 0; from < m.PageSize; from += 64 {
				bad := bytes.Clone(b)
				clear(bad[id*m.PageSize+from:][:min(128, m.PageSize-from)])
				if bytes.Equal(bad, b) {
					continue
				}
				damaged++
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				list, err := listRefs(t, path)
				if err == nil && len(list) != refs {
					t.Errorf("%d refs, bytes %d to %d of page %d are zero: %d refs and no error", refs, from, from+128, id, len(list))
				}
				found, auditErr := audit(t, path, false)
				if err != nil && auditErr == nil && len(found.harm()) == 0 {
					t.Errorf("%d refs, page %d at %d: fsck says it is sound, and refs cannot be listed: %v", refs, id, from, err)
				}
			}
		}
		if damaged < 10 {
			t.Errorf("only %d places were damaged", damaged)
		}
	}
}

func listRefs(t *testing.T, path string) ([]objects.Ref, error) {
	s, err := objects.Open(t.Context(), path, objects.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	return s.Refs(t.Context(), objects.RefQuery{})
}
