package maintain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// audited is what an audit finds.
type audited struct {
	objects    []objects.Object
	tombstones []objects.Tombstone
	refs       []objects.ID
}

// tell calls the functions of an audit.
func (f audited) tell(a objects.Audit) error {
	err := a.Begin(len(f.objects))
	for i := 0; i < len(f.objects) && err == nil; i++ {
		err = a.Objects(f.objects[i : i+1])
	}
	for i := 0; i < len(f.tombstones) && err == nil; i++ {
		err = a.Tombstone(f.tombstones[i])
	}
	for i := 0; i < len(f.refs) && err == nil; i++ {
		err = a.Ref(objects.Ref{Name: fmt.Sprint("refs/heads/", i), Target: f.refs[i]})
	}
	return err
}

// merged is a sound history with a merge, the merge, and the commit before its first parent.
func merged(t *testing.T) (all audited, merge, before objects.Object) {
	t.Helper()
	ctx := t.Context()
	repo, err := tract.Open(ctx, "mem:", tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	main := repo.Branch("main")
	for i := range 12 {
		if _, err := main.Append(ctx, []content.Block{content.User(fmt.Sprint("Question ", i))}, tract.AppendOptions{Label: "a label"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err1 := main.Fork(ctx, "side", "HEAD~3")
	_, err2 := repo.Branch("side").AppendUser(ctx, "On the side.")
	_, err3 := main.Merge(ctx, "side", tract.MergeOptions{})
	tip, err4 := main.Tip(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	all = audited{objects: allObjects(ctx, t, repo.Store()), refs: []objects.ID{tip}}
	get := func(id objects.ID) objects.Object {
		return all.objects[slices.IndexFunc(all.objects, func(o objects.Object) bool { return o.ID == id })]
	}
	merge = get(tip)
	return all, merge, get(get(merge.Parents[0]).Parents[0])
}

// TestLinkCheckAgreesWithGraph compares the two checks of fsck: the one in little memory
// passes a store exactly when the one with the graph finds nothing, and counts the same.
func TestLinkCheckAgreesWithGraph(t *testing.T) {
	sound, merge, before := merged(t)
	cases := map[string]audited{"sound": sound}
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for i := range 20 {
		twice := slices.Concat(sound.objects, sound.objects)
		r.Shuffle(len(twice), func(i, k int) { twice[i], twice[k] = twice[k], twice[i] })
		cases[fmt.Sprint("twice in any order ", i)] = audited{objects: twice, refs: sound.refs}
	}
	tombstone := func(o objects.Object, size int) objects.Tombstone {
		return objects.Tombstone{ID: o.ID, Kind: o.Kind, Size: int64(size)}
	}
	for i, o := range sound.objects {
		without := sound
		without.objects = slices.Delete(slices.Clone(sound.objects), i, i+1)
		cases[fmt.Sprint("without ", o.Kind, i)] = without
		without.tombstones = []objects.Tombstone{tombstone(o, len(o.Data))}
		cases[fmt.Sprint("purged ", o.Kind, i)] = without
		without.tombstones = []objects.Tombstone{tombstone(o, len(o.Data)+1)}
		cases[fmt.Sprint("purged, of another size ", o.Kind, i)] = without
	}
	with := func(o objects.Object) audited {
		return audited{objects: append(slices.Clone(sound.objects), o), refs: append(slices.Clone(sound.refs), o.ID)}
	}
	first := func(k objects.Kind) objects.Object {
		return sound.objects[slices.IndexFunc(sound.objects, func(o objects.Object) bool { return o.Kind == k })]
	}
	words, label := first(objects.KindContent), first(objects.KindLabel)
	other := objects.New(objects.KindContent, nil, nil, words.Data[:len(words.Data)-1])
	for name, o := range map[string]objects.Object{
		"too deep":                       objects.New(objects.KindCommit, []objects.ID{merge.Parents[0]}, before.Links, before.Data),
		"not deep enough":                objects.New(objects.KindCommit, nil, before.Links, before.Data),
		"a merge that is too deep":       objects.New(objects.KindCommit, []objects.ID{before.ID, merge.Parents[1]}, merge.Links, merge.Data),
		"a merge that is not":            objects.New(objects.KindCommit, []objects.ID{merge.ID, merge.Parents[1]}, merge.Links, merge.Data),
		"a merge with the wrong parents": objects.New(objects.KindCommit, []objects.ID{merge.Parents[0], words.ID}, merge.Links, merge.Data),
		"a merge of a label":             objects.New(objects.KindCommit, []objects.ID{merge.Parents[0], label.ID}, merge.Links, merge.Data),
		"a parent that is no commit":     objects.New(objects.KindCommit, []objects.ID{words.ID}, before.Links, before.Data),
		"content that is a commit":       objects.New(objects.KindCommit, before.Parents, append([]objects.ID{before.ID}, before.Links[1:]...), before.Data),
		"content of another size":        objects.New(objects.KindCommit, before.Parents, append([]objects.ID{other.ID}, before.Links[1:]...), before.Data),
		"no record":                      objects.New(objects.KindCommit, before.Parents, before.Links, []byte("no record")),
		"no label":                       objects.New(objects.KindLabel, nil, nil, []byte("no record")),
	} {
		cases[name] = with(o)
	}
	cases["a ref to the past"] = with(before)
	lost := sound
	lost.refs = []objects.ID{before.ID}
	cases["unreachable"] = lost
	cases["a ref to nothing"] = audited{objects: sound.objects, refs: append(slices.Clone(sound.refs), objects.Hash([]byte("nothing")))}

	passed := 0
	for name, found := range cases {
		full := &checker{}
		if err := errors.Join(found.tell(full.auditCallbacks()), full.finish()); err != nil {
			t.Fatal(err)
		}
		clean := len(full.result.Damages) == 0 && full.result.Unreachable == 0
		for _, rows := range []int{1, tableRows} {
			c := newLinkCheck(rows)
			err := found.tell(c.auditCallbacks())
			if err == nil {
				err = c.checkRowsAndCountObjects()
			}
			inFile := c.table.file != nil
			c.table.closeAndRemove()
			switch {
			case clean != (err == nil) || err != nil && !errors.Is(err, errNeedsGraph):
				t.Errorf("%s, %d rows in memory: %v; the graph finds %+v", name, rows, err, full.result)
			case clean && !reflect.DeepEqual(c.result, full.result):
				t.Errorf("%s, %d rows in memory: %+v, want %+v", name, rows, c.result, full.result)
			case clean && inFile != (rows == 1):
				t.Errorf("%s: of %d rows in memory some are in a file: %v", name, rows, inFile)
			case clean:
				passed++
			}
		}
	}
	if passed < 40 || passed == 2*len(cases) {
		t.Errorf("%d of %d checks passed", passed, 2*len(cases))
	}
}

// writeLong calls put with the objects of a history of n commits, a part at a time, and returns its
// last commit.
func writeLong(t *testing.T, n int, put func(list []objects.Object, tip objects.ID) error) (tip objects.ID) {
	t.Helper()
	var last *commit.Commit
	for done := 0; done < n; {
		var drafts []commit.Draft
		for ; len(drafts) < 500 && done < n; done++ {
			drafts = append(drafts, commit.Draft{Block: content.User(fmt.Sprintf("Question %d of a long conversation", done))})
		}
		commits, list, err := commit.Write(last, drafts...)
		if err == nil {
			last = commits[len(commits)-1]
			err = put(list, last.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return last.ID
}

// TestLinkCheckUsesLittleMemory checks histories of 5,000 and of 50,000 commits with few rows in
// memory, and counts what it keeps there.
func TestLinkCheckUsesLittleMemory(t *testing.T) {
	const rows = 32
	var most [2]int
	for i, n := range []int{5_000, 50_000} {
		c := newLinkCheck(rows)
		a := c.auditCallbacks()
		if err := a.Begin(2 * n); err != nil {
			t.Fatal(err)
		}
		tip := writeLong(t, n, func(list []objects.Object, _ objects.ID) error {
			err := a.Objects(list)
			kept, largest := len(c.merges)+len(c.parents), 0
			for i := range c.table.parts {
				p, size := &c.table.parts[i], 0
				for _, b := range p.blocks {
					size += b.rows
				}
				kept, largest = kept+len(p.recent)+len(p.blocks), max(largest, size)
			}
			most[i] = max(most[i], kept+largest) // a partition is read as a whole
			return err
		})
		if err := errors.Join(a.Ref(objects.Ref{Name: "refs/heads/main", Target: tip}), c.checkRowsAndCountObjects()); err != nil || c.result.Commits != n || c.result.Objects != 2*n {
			t.Errorf("%+v, %v; want %d commits", c.result, err, n)
		}
		path := c.table.file.Name()
		c.table.closeAndRemove()
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary file %s is there afterwards (%v)", path, err)
		}
	}
	t.Logf("%d and %d rows and blocks are in memory", most[0], most[1])
	if most[1] > 3*most[0] { // the history is ten times longer
		t.Errorf("%d rows and blocks of 5,000 commits are in memory, and %d of 50,000", most[0], most[1])
	}
}

// TestMemoryOfFsck checks stores of one and of three million commits.
func TestMemoryOfFsck(t *testing.T) {
	if os.Getenv("TRACT_TORTURE") == "" {
		t.Skip("TRACT_TORTURE is not set")
	}
	var most [2]uint64
	for i, n := range []int{1_000_000, 3_000_000} {
		dir := filepath.Join(t.TempDir(), "store")
		s, err := objects.Open(t.Context(), dir, objects.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		var tip objects.ID
		writeLong(t, n, func(list []objects.Object, next objects.ID) error {
			b := objects.Batch{Put: list, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: next}}}
			tip = next
			return s.Apply(t.Context(), b)
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		calls := 0
		result, err := Fsck(t.Context(), dir, FsckOptions{Progress: func(_, _ int64) {
			if calls++; calls%50 == 0 {
				runtime.GC()
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				most[i] = max(most[i], stats.HeapAlloc)
			}
		}})
		if err != nil || result.Commits != n || len(result.Damages) > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		t.Logf("%d commits: %d KB after %d calls", n, most[i]>>10, calls)
	}
	if 10*most[1] > 13*most[0] {
		t.Errorf("fsck takes %d KB at a million commits, and %d KB at three", most[0]>>10, most[1]>>10)
	}
}
