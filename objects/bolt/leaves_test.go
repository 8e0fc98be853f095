package bolt

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLeavesAreReadWhole reads all pages of a file, forwards, backwards and in no order, so
// that the one before is shorter, longer or of another kind: each is what it is when it is
// read alone, and its neighbours in memory stay as they are.
func TestLeavesAreReadWhole(t *testing.T) {
	s, _ := fresh(t)
	line(t, s, "main", 3000)
	var ids []uint64
	err := inner(t, s).view(t.Context(), "read", func(l *look) error {
		for _, bucket := range []string{metaBucket, headsBucket, bodiesBucket} {
			for e, err := range l.ascend(bucket, nil) {
				if err != nil {
					return err
				}
				if e.page.file != nil && !slices.Contains(ids, e.page.id) {
					ids = append(ids, e.page.id)
				}
			}
		}
		ids = append(ids, l.meta.root)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	backwards := slices.Clone(ids)
	slices.Reverse(backwards)
	mixed := slices.Clone(ids)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(mixed), func(i, k int) { mixed[i], mixed[k] = mixed[k], mixed[i] })
	long, all := 0, 0
	for _, order := range [][]uint64{ids, backwards, mixed, append(mixed, ids...)} {
		err := inner(t, s).view(t.Context(), "read", func(l *look) error {
			l.arena = &arena{}
			var w leaves
			var read []*page
			for _, id := range order {
				p, err := w.read(l, id)
				if err != nil {
					return err
				}
				read = append(read, p)
			}
			for i, p := range read {
				want, err := readPage(l.file, l.meta, order[i])
				if err != nil {
					return err
				}
				whole, err := want.bytes(0, want.size)
				if err != nil {
					return err
				}
				if p.leaf && p.size <= wholeLeaf && len(p.head) != p.size {
					t.Errorf("of the %d bytes of leaf %d %d were read", p.size, p.id, len(p.head))
				}
				if p.id != want.id || p.size != want.size || p.count != want.count || !bytes.Equal(p.head, whole[:len(p.head)]) {
					t.Errorf("page %d of %d bytes is not what it is when it is read alone", p.id, p.size)
				}
				if all++; p.size > l.meta.pageSize {
					long++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if long == 0 || long == all {
		t.Errorf("%d of %d pages are longer than one", long, all)
	}
}
