package objectstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

var refs = []promise{
	{"Refs/by name", refsByName},
	{"Refs/newest first", refsNewest},
	{"Refs/the newest of very many", refsVeryMany},
	{"GetRefs/in the order asked", getRefs},
}

// someRefs creates refs whose times do not ascend with their names, some equal.
func someRefs(t *testing.T, s objects.Store) []objects.Ref {
	t.Helper()
	var all []objects.Ref
	a := content("a")
	for i, name := range []string{
		"refs/heads/a", "refs/heads/a/b", "refs/heads/a-b", "refs/heads/ab", "refs/heads/b",
		"refs/heads/ä", "refs/heads/Z", "refs/tags/a", "refs/notes/x/y", "refs/headstrong/a",
	} {
		b := move(name, objects.ID{}, a)
		b.Note.Time = noon.Add(time.Duration(i*7%5) * time.Hour)
		apply(t, s, b)
		all = append(all, objects.Ref{Name: name, Target: a.ID, Version: 1, Updated: b.Note.Time})
	}
	return all
}

// selected returns what a query selects of all, the slow and plain way.
func selected(all []objects.Ref, q objects.RefQuery) (want []objects.Ref) {
	for _, r := range all {
		if strings.HasPrefix(r.Name, q.Prefix) && r.Name > q.After {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b objects.Ref) int {
		if c := b.Updated.Compare(a.Updated); q.Newest && c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	if q.Limit > 0 {
		want = want[:min(q.Limit, len(want))]
	}
	return want
}

func wantRefs(t *testing.T, s objects.Store, all []objects.Ref, q objects.RefQuery) {
	t.Helper()
	got, err := s.Refs(t.Context(), q)
	if err != nil {
		t.Fatalf("refs %+v: %v", q, err)
	}
	want := selected(all, q)
	if !slices.EqualFunc(got, want, func(a, b objects.Ref) bool {
		return a.Name == b.Name && a.Target == b.Target && a.Version == b.Version && a.Updated.Equal(b.Updated)
	}) {
		t.Errorf("refs %+v:\n%+v\nwant\n%+v", q, got, want)
	}
}

func refsByName(t *testing.T, s objects.Store) {
	wantRefs(t, s, nil, objects.RefQuery{})
	all := someRefs(t, s)
	for _, prefix := range []string{"", "refs/heads/", "refs/heads", "refs/heads/a", "refs/none/", "refs/tags/a"} {
		for _, after := range []string{"", "refs/heads/a", "refs/heads/aa", "refs/heads/z", "refs/z", "a", "\xff"} {
			for _, limit := range []int{0, 1, 3, 100} {
				wantRefs(t, s, all, objects.RefQuery{Prefix: prefix, After: after, Limit: limit})
				wantRefs(t, s, all, objects.RefQuery{Prefix: prefix, After: after, Limit: limit, Newest: true})
			}
		}
	}
}

func refsNewest(t *testing.T, s objects.Store) {
	all := someRefs(t, s)
	for i, k := range []int{3, 0, 7, 3} { // move some again, one of them back in time and before 1970
		next := content(fmt.Sprint("again ", i))
		b := move(all[k].Name, all[k].Target, next)
		b.Note.Time = noon.Add(time.Duration(i-2) * 40 * 365 * 24 * time.Hour)
		apply(t, s, b)
		all[k].Target, all[k].Updated = next.ID, b.Note.Time
		all[k].Version++
	}
	apply(t, s, move(all[5].Name, all[5].Target, objects.Object{}))
	all = slices.Delete(all, 5, 6)
	for _, limit := range []int{0, 1, 2, 5, 100} {
		wantRefs(t, s, all, objects.RefQuery{Limit: limit, Newest: true})
		wantRefs(t, s, all, objects.RefQuery{Limit: limit, Newest: true, Prefix: "refs/heads/"})
	}
}

func refsVeryMany(t *testing.T, s objects.Store) {
	total, batch := 20_000, 2_000
	if testing.Short() {
		total, batch = 1_000, 100
	}
	a := content("a")
	name := func(i int) string { return fmt.Sprintf("refs/heads/%06d", i*7919%total) }
	for i := 0; i < total; i += batch {
		b := objects.Batch{Put: []objects.Object{a}, Note: note("many")}
		b.Note.Time = noon.Add(time.Duration(i) * time.Second)
		for k := i; k < i+batch; k++ {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: name(k), New: a.ID})
		}
		apply(t, s, b)
	}
	var want []string
	for k := total - batch; k < total; k++ { // the last batch is the newest, in the order of names
		want = append(want, name(k))
	}
	slices.Sort(want)
	start := time.Now()
	got, err := s.Refs(t.Context(), objects.RefQuery{Newest: true, Limit: 50})
	t.Logf("50 newest of %d refs in %v", total, time.Since(start))
	if err != nil || len(got) != 50 {
		t.Fatalf("%d refs, %v; want 50", len(got), err)
	}
	for i, r := range got {
		if r.Name != want[i] {
			t.Fatalf("newest ref %d is %s, want %s", i, r.Name, want[i])
		}
	}
	all, err := s.Refs(t.Context(), objects.RefQuery{Prefix: "refs/heads/"})
	if err != nil || len(all) != total {
		t.Errorf("%d refs, %v; want %d", len(all), err, total)
	}
}

func getRefs(t *testing.T, s objects.Store) {
	all := someRefs(t, s)
	got, err := s.GetRefs(t.Context(), all[4].Name, "refs/heads/none", all[1].Name, all[7].Name)
	if err != nil || len(got) != 3 {
		t.Fatalf("get refs: %v, %v", got, err)
	}
	for i, k := range []int{4, 1, 7} {
		if got[i].Name != all[k].Name || got[i].Target != all[k].Target {
			t.Errorf("ref %d is %+v, want %+v", i, got[i], all[k])
		}
	}
	if got, err := s.GetRefs(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("get of no refs: %v, %v", got, err)
	}
}
