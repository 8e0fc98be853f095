package compaction

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// memorySource is a Source in memory: packs of objects, and refs.
type memorySource struct {
	packs [][]objects.Object
	refs  map[string]objects.ID
	dense bool // every pack is as the target stores them
	flip  bool // objects are read with a flipped bit
}

func (s *memorySource) head(n int) (Head, error) {
	ids, table, _ := pack.EncodeTable(s.packs[n], 0)
	t, err := pack.ParseTable(len(s.packs[n]), ids, table, nil)
	return Head{Table: t, Number: uint32(n + 1), Others: len(ids)/len(objects.ID{}) - len(s.packs[n])}, err
}

func (s *memorySource) View(f func(v View) error) error { return f(s) }

func (s *memorySource) Heads(f func(h Head) error) error {
	for n := range s.packs {
		h, err := s.head(n)
		if err == nil {
			err = f(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *memorySource) Packs(after uint32, f func(p Pack) error) error {
	for n := int(after); n < len(s.packs); n++ {
		if err := f(Pack{Number: uint32(n + 1)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *memorySource) Open(p Pack) (Contents, error) {
	h, err := s.head(int(p.Number) - 1)
	return Contents{Head: h, Sound: true, Dense: s.dense, Object: func(row int) objects.Object {
		o := s.packs[p.Number-1][row]
		if s.flip {
			o.Data = append([]byte{o.Data[0] ^ 1}, o.Data[1:]...)
		}
		return o
	}}, err
}

func (s *memorySource) Records(func(objects.ID, bool) bool, func(Record) error) error { return nil }

func (s *memorySource) Decode(Record) (objects.Object, error) { return objects.Object{}, nil }

func (s *memorySource) Entries(uint64, func(objects.LogEntry) error) error { return nil }

func (s *memorySource) Refs(f func(name string, target objects.ID, value []byte) error) error {
	for name, id := range s.refs {
		if err := f(name, id, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *memorySource) Ref(string) ([]byte, error) { return nil, nil }

func (s *memorySource) Locate(id objects.ID) (number uint32, row int, ok bool, err error) {
	for n, list := range s.packs {
		for i := range list {
			if list[i].ID == id {
				return uint32(n + 1), i, true, nil
			}
		}
	}
	return 0, 0, false, nil
}

func (s *memorySource) Head(number uint32) (Head, error) { return s.head(int(number) - 1) }

func (s *memorySource) Object(id objects.ID) (objects.Object, error) {
	n, row, _, err := s.Locate(id)
	return s.packs[n-1][row], err
}

// memoryTarget notes the objects that it is given.
type memoryTarget struct {
	packs   []uint32
	objects map[objects.ID]bool
}

func (t *memoryTarget) AddPack(p Pack) error {
	t.packs = append(t.packs, p.Number)
	return nil
}

func (t *memoryTarget) AddObjects(list []objects.Object) error {
	for _, o := range list {
		t.objects[o.ID] = true
	}
	return nil
}

func (t *memoryTarget) SetRecord(Record) error          { return nil }
func (t *memoryTarget) DeleteRecord(objects.ID) error   { return nil }
func (t *memoryTarget) AddEntry(objects.LogEntry) error { return nil }
func (t *memoryTarget) SetRef(string, []byte) error     { return nil }
func (t *memoryTarget) Write() error                    { return nil }

// history is a source with n packs of 30 commits and their contents, and a branch at the end.
func history(n int) *memorySource {
	s := &memorySource{refs: map[string]objects.ID{}}
	var parents []objects.ID
	for i := range n {
		var list []objects.Object
		for k := range 30 {
			c := objects.New(objects.KindContent, nil, nil, fmt.Appendf(nil, "content %d-%d", i, k))
			o := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, fmt.Appendf(nil, "commit %d-%d", i, k))
			list, parents = append(list, c, o), []objects.ID{o.ID}
		}
		s.packs = append(s.packs, list)
	}
	s.refs["refs/heads/main"] = parents[0]
	return s
}

// copyAll copies what is kept.
func copyAll(t *testing.T, s *memorySource, m *Marks) (*memoryTarget, *Copier, error) {
	t.Helper()
	out := &memoryTarget{objects: map[objects.ID]bool{}}
	c := New(s, out, m)
	return out, c, c.Rounds()
}

// TestMarksKeepOneBitOfAnObject counts the memory of gc that grows with the objects of a store:
// one bit for each, and no id.
func TestMarksKeepOneBitOfAnObject(t *testing.T) {
	m, err := Mark(history(40), Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if bits := 64 * (len(m.kept) + len(m.todo)); m.rows != 40*60 || bits > m.rows+2*64 || len(m.records) > 0 || len(m.roots) > 1 {
		t.Errorf("%d bits, %d records and %d roots for %d objects", bits, len(m.records), len(m.roots), m.rows)
	}
}

// TestMarkFollowsEdgesAndAges marks a history with objects beside it, old and young.
func TestMarkFollowsEdgesAndAges(t *testing.T) {
	s := history(3)
	stray := func(name string) []objects.Object {
		return []objects.Object{objects.New(objects.KindContent, nil, nil, []byte(name))}
	}
	s.packs = append(s.packs, stray("old"), stray("young"))
	for _, want := range []struct {
		Options
		kept, young, removed int
	}{
		{Options{All: true}, 180, 0, 2},
		{Options{Old: 4}, 180, 1, 1},
		{Options{}, 180, 2, 0},
		{Options{All: true, Keep: []objects.ID{s.packs[3][0].ID}}, 181, 0, 1},
	} {
		m, err := Mark(s, want.Options)
		if err != nil {
			t.Fatal(err)
		}
		var got objects.Swept
		if err := m.Count(&got); err != nil || got.Kept != want.kept || got.Young != want.young || got.Removed != want.removed {
			t.Errorf("%+v: %+v, %v", want, got, err)
		}
		out, c, err := copyAll(t, s, m)
		if err != nil || c.Kept != want.kept+want.young || len(out.objects) != c.Kept {
			t.Errorf("%+v: %d objects of %d were copied, %v", want, len(out.objects), c.Kept, err)
		}
	}
}

// TestDensePacksAreCopiedAsTheyAre copies whole packs, but not one of which something is removed.
func TestDensePacksAreCopiedAsTheyAre(t *testing.T) {
	s := history(4)
	s.dense = true
	s.packs[2] = append(s.packs[2], objects.New(objects.KindContent, nil, nil, []byte("stray")))
	m, err := Mark(s, Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	out, c, err := copyAll(t, s, m)
	if err != nil || c.Kept != 240 || len(out.packs) != 3 || len(out.objects) != 60 {
		t.Errorf("%d packs and %d objects were copied of %d, %v", len(out.packs), len(out.objects), c.Kept, err)
	}
}

// TestObjectsAreHashedBeforeTheyAreWritten has memory go wrong while packs are copied as they
// are, and while they are packed anew: their checksums would stand for what is wrong.
func TestObjectsAreHashedBeforeTheyAreWritten(t *testing.T) {
	for _, dense := range []bool{true, false} {
		s := history(2)
		m, err := Mark(s, Options{All: true})
		if err != nil {
			t.Fatal(err)
		}
		s.dense, s.flip = dense, true
		if out, _, err := copyAll(t, s, m); !errors.Is(err, objects.ErrCorrupt) || len(out.packs)+len(out.objects) > 0 {
			t.Errorf("dense %t: %v, and %d packs and %d objects were written", dense, err, len(out.packs), len(out.objects))
		}
	}
}
