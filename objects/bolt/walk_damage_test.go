package bolt

import (
	"iter"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestDamagedHeadInReadAhead flips a bit in a head that is read ahead: in the id by which it is
// recognized as the next, in an id in the middle, after the ids, and in the checksum. The walk
// yields the same commits.
func TestDamagedHeadInReadAhead(t *testing.T) {
	s, path := fresh(t)
	const all = 4096
	tip := line(t, s, "main", all)
	want := ids(t, inner(t, s).ChainRuns(t.Context(), tip, 0))
	if len(want) != all {
		t.Fatalf("the line has %d commits", len(want))
	}
	type head struct {
		at                int64
		size, count, ends int
		last              objects.ID
	}
	var heads []head
	err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
		for e, err := range l.ascend(headsBucket, nil) {
			if err != nil {
				return err
			}
			b, err := e.Value()
			if err != nil {
				return err
			}
			f := parsePackHeader(b)
			heads = append(heads, head{(e.Page().Offset + int64(e.ValueAt)), len(b), f.count, f.end, objects.ID(b[packIDs+(f.count-1)*idSize:])})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	flip := func(at int64) {
		var b [1]byte
		if _, err := file.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0x10
		if _, err := file.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
	for n, h := range heads {
		if n%rounds(6, 4, 1) != 0 && n != len(heads)-1 {
			continue
		}
		for name, at := range map[string]int{
			"the sum": 3, "the first id": packIDs + 5, "an id": packIDs + h.size/3, "the id it is known by": packIDs + h.count*idSize - 7, "an id elsewhere": h.ends - 7, "the sheet": h.ends + (h.size-h.ends)/2, "the end": h.size - 1,
		} {
			flip(h.at + int64(at))
			for _, limit := range []int{0, all - 10} {
				in := inner(t, mustOpen(t, path, objects.Options{ReadOnly: true}))
				got := ids(t, in.ChainRuns(t.Context(), tip, limit))
				if limit == 0 {
					limit = all
				}
				if len(got) != limit {
					t.Fatalf("head %d of %d, %s: the line has %d commits, want %d", n, len(heads), name, len(got), limit)
				}
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("head %d of %d, %s: commit %d is another", n, len(heads), name, i)
					}
				}
			}
			in := inner(t, mustOpen(t, path, objects.Options{ReadOnly: true}))
			c, b := newChainReader(h.last, 0), &chainBatch{}
			c.after = uint32(n) + 2
			err := in.view(t.Context(), "read", func(l *snapshot) error { return c.read(l, b) })
			if err != nil || len(b.list) == 0 {
				t.Fatalf("head %d of %d, %s: who comes from the one above is given %d commits: %v", n, len(heads), name, len(b.list), err)
			}
			flip(h.at + int64(at))
		}
	}
}

// ids are those of a line, each the hash of what was given with it.
func ids(t *testing.T, line iter.Seq2[objects.CommitRun, error]) (list []objects.ID) {
	t.Helper()
	for run, err := range line {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range run.Objects {
			if err := o.Check(); err != nil {
				t.Fatal(err)
			}
			list = append(list, o.ID)
		}
	}
	return list
}
