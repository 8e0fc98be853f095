//go:build postgres

package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// grow appends n commits to a ref in batches, each with a content, and returns them, the
// oldest first.
func grow(t *testing.T, s objects.Store, ref, who string, n, batch int) (commits, contents []objects.Object) {
	t.Helper()
	at, err := objects.ReadRef(t.Context(), s, ref)
	if err != nil {
		t.Fatal(err)
	}
	tip := at.Target
	for from := 0; from < n; from += batch {
		b := objects.Batch{}
		old := tip
		for i := from; i < min(from+batch, n); i++ {
			c, content := counting(tip, i, who)
			b.Put = append(b.Put, c, content) // the commit first: the order is not that of the history
			commits, contents, tip = append(commits, c), append(contents, content), c.ID
		}
		slices.Reverse(b.Put)
		b.Refs = []objects.RefUpdate{{Name: ref, Old: old, New: tip}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return commits, contents
}

// rowsOf counts rows of a table that belong to the repo of a store.
func rowsOf(t *testing.T, s objects.Store, table, where string) (n int) {
	t.Helper()
	in, _ := objects.As[*store](s)
	if err := in.pool.QueryRow(t.Context(), `select count(*) from `+table+` where repo = $1 `+where, in.repo).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sealAll waits until the background has sealed what it may.
func sealAll(t *testing.T, s objects.Store) {
	t.Helper()
	for until := time.Now().Add(time.Minute); rowsOf(t, s, "tract_tail", "") >= sealAt; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d commits are not sealed", rowsOf(t, s, "tract_tail", ""))
		}
	}
}

// TestSealed reads a history that is mostly in segments in every way, with forks from sealed
// commits, and an index.
func TestSealed(t *testing.T) {
	const n = 67 * segmentSize
	s := openURL(t, freshURL(t))
	commits, contents := grow(t, s, "refs/heads/main", "main", n, 700)
	sealAll(t, s)
	in, _ := objects.As[*store](s)
	if rows, segments := rowsOf(t, s, "tract_index", ""), rowsOf(t, s, "tract_seg", ""); rows != indexParts*segments {
		t.Fatalf("the index has %d rows for %d segments", rows, segments)
	}
	fork := commits[1000]
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: fork.ID}}}); err != nil {
		t.Fatal(err)
	}
	forked, _ := grow(t, s, "refs/heads/fork", "fork", 5, 2)
	if lines := rowsOf(t, s, "tract_line", ""); lines != 2 {
		t.Errorf("%d lines, want one for each branch", lines)
	}

	want := slices.Clone(commits[:1001])
	want = append(want, forked...)
	slices.Reverse(want)
	i := 0
	for o, err := range objectstest.ChainWithContent(t.Context(), s, want[0].ID) {
		if err != nil {
			t.Fatal(err)
		}
		if w := want[i/2]; i%2 == 0 && o.ID != w.ID || i%2 == 1 && o.ID != w.Links[0] {
			t.Fatalf("element %d of the chain is %s", i, o.ID.Short())
		}
		i++
	}
	if i != 2*len(want) {
		t.Fatalf("the chain has %d elements, want %d", i, 2*len(want))
	}
	fresh := openURL(t, in.name) // which remembers no places
	for _, k := range []int{0, 1, 255, 256, 5000, n - 1} {
		for _, w := range []objects.Object{commits[k], contents[k]} {
			if o, err := objects.Read(t.Context(), fresh, w.ID); err != nil || string(o.Data) != string(w.Data) {
				t.Errorf("object %d is %q, %v", k, o.Data, err)
			}
			for _, limit := range []int{0, 1} {
				found, err := fresh.Find(t.Context(), w.Kind, w.ID.String()[:9], limit)
				if err != nil || !slices.Contains(found, w.ID) {
					t.Errorf("object %d is not found by its id: %v", k, err)
				}
			}
		}
	}
	missing := objects.Hash([]byte("missing"))
	if got, err := fresh.Missing(t.Context(), []objects.ID{commits[3].ID, missing, contents[9].ID}); err != nil || !slices.Equal(got, []objects.ID{missing}) {
		t.Errorf("missing: %v, %v", got, err)
	}
	if all, err := fresh.Find(t.Context(), objects.KindContent, "", 3); err != nil || len(all) != 3 {
		t.Errorf("the first contents: %v, %v", all, err)
	}
	_, err := drain(s.Chain(t.Context(), commits[n-1].ID, objects.ChainOptions{Stop: []objects.ID{forked[4].ID}}))
	if d := (*objects.DivergedError)(nil); !errors.As(err, &d) || d.Base != fork.ID {
		t.Errorf("the branches part: %v", err)
	}
	wantSound(t, s)
}

func drain(seq func(func(objects.Object, error) bool)) (n int, err error) {
	for _, err = range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// TestPutAgainAfterSealing puts a whole history again, as an import does: nothing is stored
// twice, sealed or not.
func TestPutAgainAfterSealing(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, contents := grow(t, s, "refs/heads/main", "main", 700, 700)
	sealAll(t, s)
	again := openURL(t, nameOf(s))
	for _, b := range []objects.Batch{{Put: append(slices.Clone(commits), contents...)}, {Put: append(slices.Clone(contents[600:]), commits[600:]...), Copies: true}} {
		if err := again.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	wantSound(t, s)
	if lines := rowsOf(t, s, "tract_line", ""); lines != 1 {
		t.Errorf("%d lines, want 1", lines)
	}
}

func nameOf(s objects.Store) string {
	in, _ := objects.As[*store](s)
	return in.name
}

// TestPurgeOfSealed purges contents in segments, and the tables do not have their text.
func TestPurgeOfSealed(t *testing.T) {
	s := openURL(t, freshURL(t))
	_, contents := grow(t, s, "refs/heads/main", "words", 800, 800)
	sealAll(t, s)
	var list []objects.Tombstone
	gone := []int{103, 303, 700} // two are sealed, one is not
	for _, k := range gone {
		list = append(list, objects.Tombstone{ID: contents[k].ID, Time: time.Now(), Why: "test"})
	}
	n, err := objects.Purge(t.Context(), s, list, nil)
	if err != nil || n != 3 {
		t.Fatalf("%d were purged, %v", n, err)
	}
	other := openURL(t, nameOf(s))
	for i, c := range contents {
		_, err := objects.Read(t.Context(), other, c.ID)
		if purged := slices.Contains(gone, i); purged != errors.Is(err, objects.ErrPurged) || !purged && err != nil {
			t.Errorf("content %d: %v", i, err)
		}
	}
	in, _ := objects.As[*store](s)
	var texts [][]byte
	for _, sql := range []string{`select body from tract_tail where repo = $1 and body is not null`, `select data from tract_blob where repo = $1`} {
		list, err := collect(t.Context(), in, pgx.RowTo[[]byte], sql, in.repo)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, list...)
	}
	numbers, err := collect(t.Context(), in, pgx.RowTo[int32], `select number from tract_seg where repo = $1`, in.repo)
	if err != nil || len(numbers) < 2 {
		t.Fatalf("%d segments, %v", len(numbers), err)
	}
	for _, number := range numbers {
		seg, err := in.segment(t.Context(), in, number, true)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, seg.body)
	}
	all := bytes.Join(texts, []byte("\n"))
	for i, c := range contents {
		if i > 99 && bytes.Contains(all, c.Data) == slices.Contains(gone, i) { // the text of 9 is in that of 99
			t.Errorf("the tables have the text of content %d: %t", i, bytes.Contains(all, c.Data))
		}
	}
	wantSound(t, s)
}

// TestSweepOfSealed removes commits that no ref ever named from segments and from the tail.
func TestSweepOfSealed(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, contents := grow(t, s, "refs/heads/main", "kept", 20, 20)
	var loose []objects.Object
	tip := commits[9].ID
	for i := range 600 {
		c, content := counting(tip, i, "loose")
		loose, tip = append(loose, c, content), c.ID
	}
	if err := s.Apply(t.Context(), objects.Batch{Put: loose}); err != nil {
		t.Fatal(err)
	}
	sealAll(t, s)
	m, _ := objects.As[objects.Maintainer](s)
	done, err := m.Sweep(t.Context(), objects.Sweep{Before: time.Now().Add(time.Hour), Keep: []objects.ID{loose[2*99].ID}})
	if err != nil || done.Removed != 1000 || done.Kept != 240 {
		t.Fatalf("swept %+v, %v", done, err)
	}
	var ids []objects.ID
	for i, o := range loose {
		if i < 200 != (i/2 <= 99) {
			t.Fatal("test")
		}
		ids = append(ids, o.ID)
	}
	missing, err := s.Missing(t.Context(), ids)
	if err != nil || !slices.Equal(missing, ids[200:]) {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	for _, o := range append(commits, contents...) {
		if _, err := objects.Read(t.Context(), s, o.ID); err != nil {
			t.Error(err)
		}
	}
	wantSound(t, s)
	// The line goes on where it was cut.
	c, content := counting(loose[2*99].ID, 1000, "on")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{c, content}}); err != nil {
		t.Fatal(err)
	}
	if n, err := drain(s.Chain(t.Context(), c.ID, objects.ChainOptions{})); err != nil || n != 111 {
		t.Errorf("%d commits, %v", n, err)
	}
	wantSound(t, s)
}

// TestForkFromOneTip appends to a commit from two stores that both believe it is the last of
// its line.
func TestForkFromOneTip(t *testing.T) {
	url := freshURL(t)
	one, two := openURL(t, url), openURL(t, url)
	commits, _ := grow(t, one, "refs/heads/main", "main", 3, 3)
	tip := commits[2].ID
	for i, s := range []objects.Store{one, two} {
		name := fmt.Sprint("refs/heads/", i)
		if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: name, New: tip}}}); err != nil {
			t.Fatal(err)
		}
		if ref, err := objects.ReadRef(t.Context(), s, name); err != nil || ref.Target != tip {
			t.Fatal(ref, err)
		}
	}
	for i, s := range []objects.Store{one, two} {
		grow(t, s, fmt.Sprint("refs/heads/", i), fmt.Sprint(i), 4, 1)
	}
	for i := range 2 {
		ref, err := objects.ReadRef(t.Context(), one, fmt.Sprint("refs/heads/", i))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := drain(two.Chain(t.Context(), ref.Target, objects.ChainOptions{})); n != 7 || err != nil {
			t.Errorf("branch %d has %d commits, %v", i, n, err)
		}
	}
	wantSound(t, one)
}

// TestWalkOfOwnCommits reads commits that the store has just written, across a fork, and then
// appends to one in the middle.
func TestWalkOfOwnCommits(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, contents := grow(t, s, "refs/heads/main", "main", 6, 2)
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: commits[3].ID}}}); err != nil {
		t.Fatal(err)
	}
	forked, _ := grow(t, s, "refs/heads/fork", "fork", 3, 1)
	want := append(slices.Clone(commits[:4]), forked...)
	slices.Reverse(want)
	if ids, purged := load(t, s, want[0].ID); len(ids) != len(want) || ids[0] != want[0].ID || ids[6] != want[6].ID || purged != 0 {
		t.Errorf("the walk has %d commits, %d of them purged", len(ids), purged)
	}
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/low", New: commits[1].ID}}}); err != nil {
		t.Fatal(err)
	}
	grow(t, s, "refs/heads/low", "low", 3, 1)
	wantSound(t, s)
	// Another process purges a content: this one does not return what it remembers.
	other := openURL(t, nameOf(s))
	if _, err := objects.Purge(t.Context(), other, []objects.Tombstone{{ID: contents[1].ID, Time: time.Now()}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.ReadRef(t.Context(), s, "refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	if ids, purged := load(t, s, commits[5].ID); len(ids) != 6 || purged != 1 {
		t.Errorf("the walk has %d commits, and the contents of %d are purged, want 1", len(ids), purged)
	}
}

// load reads commits and their contents as a compile does. It returns the commits, and how many
// have a purged content.
func load(t *testing.T, s objects.Store, tip objects.ID) (ids []objects.ID, purged int) {
	t.Helper()
	for run, err := range objects.ChainRuns(t.Context(), s, tip, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range run.Objects {
			ids = append(ids, run.Objects[i].ID)
		}
		err = objects.Load(t.Context(), s, objects.LoadRequest{
			Len: len(run.Objects),
			At:  func(i int) (objects.ID, objects.Locator) { return run.Objects[i].Links[0], run.Locator(i) },
			Give: func(_ int, _ *objects.Object, err error) error {
				if errors.Is(err, objects.ErrPurged) {
					purged++
					err = nil
				}
				return err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids, purged
}

// TestForkFromASealedCommitWithAKnownPosition appends to an early commit whose place this process
// remembers, after its line was sealed: the new commit gets a line of its own, fsck finds the store
// sound, and gc keeps what the new branch alone leads to.
func TestForkFromASealedCommitWithAKnownPosition(t *testing.T) {
	s := openURL(t, freshURL(t))
	commits, _ := grow(t, s, "refs/heads/main", "main", 4*segmentSize, 10) // small batches: every place is remembered
	for rowsOf(t, s, "tract_seg", "") == 0 {                               // sealed in the background
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	extra := objects.New(objects.KindContent, nil, nil, []byte("content of the fork"))
	fork := objects.New(objects.KindCommit, []objects.ID{commits[5].ID}, []objects.ID{extra.ID, commits[200].Links[0]}, []byte("fork"))
	err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{extra, fork}, Refs: []objects.RefUpdate{{Name: "refs/heads/fork", New: fork.ID}}})
	if err != nil {
		t.Fatal(err)
	}
	if lines := rowsOf(t, s, "tract_line", ""); lines != 2 {
		t.Errorf("%d lines, want one for each branch", lines)
	}
	wantSound(t, s)
	tip := commits[len(commits)-1].ID
	if err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip}}}); err != nil {
		t.Fatal(err)
	}
	m, _ := objects.As[objects.Maintainer](s)
	if _, err := m.Sweep(t.Context(), objects.Sweep{Before: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	missing, err := s.Missing(t.Context(), []objects.ID{extra.ID, fork.ID, commits[5].ID, commits[200].Links[0]})
	if err != nil || len(missing) != 0 {
		t.Errorf("gc removed %d objects of the fork: %v", len(missing), err)
	}
	wantSound(t, s)
}
