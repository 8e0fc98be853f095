package objectstest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

var logs = []promise{
	{"Log/entries are numbered and linked per ref", logLinked},
	{"Log/the chain of a ref goes on after it was deleted", logRecreated},
	{"Log/an entry is in the chain of each ref that it moves", logSeveral},
	{"Log/concurrent writers make one chain per ref", logCrowd},
	{"Log/of one ref and of all", logQueries},
	{"Log/keeps the note, in UTC milliseconds", logNote},
	{"Log/keeps what operation an entry belongs to and which it reverts", logGroups},
	{"Log/a deleted ref keeps its entries", logDeleted},
}

func log(t *testing.T, s objects.RefReader, name string, before uint64, limit int) []objects.LogEntry {
	t.Helper()
	entries, err := s.Log(t.Context(), name, before, limit)
	if err != nil {
		t.Fatalf("log %q: %v", name, err)
	}
	return entries
}

// wantLinked checks n entries, newest first, that are all entries of a store: their
// numbers grow, and each is linked to the one before it in the chain of each of its refs.
func wantLinked(t *testing.T, entries []objects.LogEntry, n int) {
	t.Helper()
	if len(entries) != n {
		t.Fatalf("%d log entries, want %d", len(entries), n)
	}
	newest, seq := map[string]objects.ID{}, uint64(0)
	for i, e := range slices.Backward(entries) {
		if e.Seq <= seq {
			t.Fatalf("log entry %d comes after entry %d", e.Seq, seq)
		}
		seq = e.Seq
		for _, u := range e.Refs {
			if u.Prev != newest[u.Name] {
				t.Fatalf("log entry %d is linked to %s in the chain of %s, want %s", e.Seq, u.Prev.Short(), u.Name, newest[u.Name].Short())
			}
			newest[u.Name] = e.Hash
		}
		again, err := objects.ParseLogEntry(e.Record())
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("log entry %d (place %d) is not what its record says: %v", e.Seq, i, err)
		}
	}
}

// wantChain checks that the log of one ref has n entries that are linked to one another.
func wantChain(t *testing.T, s objects.RefReader, name string, n int) {
	t.Helper()
	entries := log(t, s, name, 0, 0)
	if len(entries) != n {
		t.Fatalf("the log of %s has %d entries, want %d", name, len(entries), n)
	}
	for i, e := range entries {
		before := objects.ID{}
		if i+1 < n {
			before = entries[i+1].Hash
		}
		if prev := moveOf(t, e, name).Prev; prev != before {
			t.Errorf("entry %d of %s is linked to %s, want %s", e.Seq, name, prev.Short(), before.Short())
		}
	}
}

// moveOf returns what an entry says of a ref.
func moveOf(t *testing.T, e objects.LogEntry, name string) objects.RefUpdate {
	t.Helper()
	i := slices.IndexFunc(e.Refs, func(u objects.RefUpdate) bool { return u.Name == name })
	if i < 0 {
		t.Fatalf("entry %d does not move %s", e.Seq, name)
	}
	return e.Refs[i]
}

func logLinked(t *testing.T, s objects.Store) {
	if got := log(t, s, "", 0, 0); len(got) != 0 {
		t.Errorf("a fresh store has %d log entries", len(got))
	}
	if err := walkRef(t.Context(), s, branch, 10); err != nil {
		t.Fatal(err)
	}
	entries := log(t, s, "", 0, 0)
	wantLinked(t, entries, 10)
	for i := range entries[1:] {
		if entries[i].Refs[0].Old != entries[i+1].Refs[0].New {
			t.Errorf("entry %d does not begin where entry %d ended", entries[i].Seq, entries[i+1].Seq)
		}
	}
}

func logRecreated(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	first := move(branch, objects.ID{}, a)
	first.Refs[0].Prev = b.ID // an engine ignores it
	apply(t, s, first)
	if first.Refs[0].Prev != b.ID {
		t.Error("the batch of the caller has changed")
	}
	apply(t, s, move("refs/heads/other", objects.ID{}, b))
	for range 2 {
		apply(t, s, move(branch, a.ID, objects.Object{}))
		apply(t, s, move("refs/heads/other", b.ID, a))
		apply(t, s, move(branch, objects.ID{}, b))
		apply(t, s, move("refs/heads/other", a.ID, b))
		apply(t, s, move(branch, b.ID, a))
	}
	wantChain(t, s, branch, 7)
	wantChain(t, s, "refs/heads/other", 5)
	wantLinked(t, log(t, s, "", 0, 0), 12)
}

func logSeveral(t *testing.T, s objects.Store) {
	names := []string{"refs/heads/a", "refs/heads/b", "refs/tags/c"}
	tips := map[string]objects.ID{}
	for i := range 12 {
		next := content(fmt.Sprint("several ", i))
		b := objects.Batch{Put: []objects.Object{next}, Note: objects.Note{Time: noon}}
		for k, name := range names {
			if i%(k+1) == 0 {
				b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: tips[name], New: next.ID})
				tips[name] = next.ID
			}
		}
		apply(t, s, b)
	}
	for k, name := range names {
		wantChain(t, s, name, 12/(k+1))
	}
	wantLinked(t, log(t, s, "", 0, 0), 12)
}

// logCrowd has writers that share refs in pairs, and delete them now and then.
func logCrowd(t *testing.T, s objects.Store) {
	const writers, moves = 8, 12
	errs := make(chan error, writers)
	name := func(w int) string { return fmt.Sprint("refs/heads/crowd-", w/2) }
	for w := range writers {
		go func() {
			errs <- func() error {
				for i := range moves {
					err := s.Update(t.Context(), name(w), func(tip objects.ID) (objects.Batch, error) {
						if i%4 == 3 && !tip.IsZero() {
							return move(name(w), tip, objects.Object{}), nil
						}
						return move(name(w), tip, content(fmt.Sprint("crowd ", w, " ", i))), nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for w := 0; w < writers; w += 2 {
		wantChain(t, s, name(w), 2*moves)
	}
	wantLinked(t, log(t, s, "", 0, 0), writers*moves)
}

func logQueries(t *testing.T, s objects.Store) {
	const total = 300
	tips := map[string]objects.ID{}
	var all []objects.LogEntry
	for i := range total {
		name := fmt.Sprint("refs/heads/", i%3)
		next := content(fmt.Sprint("entry ", i))
		b := move(name, tips[name], next)
		tips[name] = next.ID
		if i%10 == 9 { // this one moves two refs
			b.Refs = append(b.Refs, objects.RefUpdate{Name: "refs/tags/t", Old: tips["refs/tags/t"], New: next.ID})
			tips["refs/tags/t"] = next.ID
		}
		apply(t, s, b)
	}
	all = log(t, s, "", 0, 0)
	wantLinked(t, all, total)
	wantChain(t, s, "refs/heads/1", total/3)
	wantChain(t, s, "refs/tags/t", total/10)
	for _, name := range []string{"", "refs/heads/0", "refs/heads/2", "refs/tags/t", "refs/tags/none", "refs/heads"} {
		for _, before := range []uint64{0, 1, 2, 100, total, total + 1, total + 100} {
			for _, limit := range []int{0, 1, 5, 1000} {
				var want []uint64
				for _, e := range all {
					if (before == 0 || e.Seq < before) && (limit == 0 || len(want) < limit) && (name == "" || moves(e, name)) {
						want = append(want, e.Seq)
					}
				}
				var got []uint64
				for _, e := range log(t, s, name, before, limit) {
					got = append(got, e.Seq)
				}
				if !slices.Equal(got, want) {
					t.Errorf("log %q before %d limit %d: %v, want %v", name, before, limit, got, want)
				}
			}
		}
	}
}

func moves(e objects.LogEntry, name string) bool {
	return slices.ContainsFunc(e.Refs, func(u objects.RefUpdate) bool { return u.Name == name })
}

func logNote(t *testing.T, s objects.Store) {
	var tip objects.ID
	for i, c := range []struct{ give, want time.Time }{
		{noon.Add(1_234_567 * time.Nanosecond), noon.Add(time.Millisecond)},
		{noon.In(time.FixedZone("east", 3*3600)), noon},
		{time.Time{}, time.Time{}},
		{time.UnixMilli(0), time.UnixMilli(0).UTC()},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)},
		{noon.Add(-time.Hour), noon.Add(-time.Hour)}, // a clock may go backwards
	} {
		next := content(fmt.Sprint("note ", i))
		b := move(branch, tip, next)
		b.Note = objects.Note{Time: c.give, Author: "Zoë \xff", Command: "annotate"}
		apply(t, s, b)
		tip = next.ID
		e := log(t, s, branch, 0, 1)[0]
		if e.Note != (objects.Note{Time: c.want, Author: "Zoë \xff", Command: "annotate"}) {
			t.Errorf("the log has %+v, want the time %v", e.Note, c.want)
		}
		if ref, err := objects.ReadRef(t.Context(), s, branch); err != nil || ref.Updated != c.want {
			t.Errorf("the ref was updated at %v, %v; want %v", ref.Updated, err, c.want)
		}
	}
}

func logGroups(t *testing.T, s objects.Store) {
	var tip objects.ID
	one, two := objects.Group{1}, objects.Group{15: 2}
	for i, want := range []objects.Note{
		{Group: one}, {Group: one, Continues: true}, {Group: two, Reverts: one}, {}, {Continues: true}, {Reverts: two},
	} {
		next := content(fmt.Sprint("group ", i))
		b := move(branch, tip, next)
		want.Time = noon
		b.Note = want
		apply(t, s, b)
		tip = next.ID
		if e := log(t, s, branch, 0, 1)[0]; e.Note != want {
			t.Errorf("the log has %+v, want %+v", e.Note, want)
		}
	}
	wantLinked(t, log(t, s, "", 0, 0), 6)
}

func logDeleted(t *testing.T, s objects.Store) {
	a := content("a")
	apply(t, s, move(branch, objects.ID{}, a))
	apply(t, s, move(branch, a.ID, objects.Object{}))
	entries := log(t, s, branch, 0, 0)
	wantLinked(t, entries, 2)
	if u := entries[0].Refs[0]; u.Old != a.ID || !u.New.IsZero() {
		t.Errorf("the newest entry is %+v, want the deletion", u)
	}
	apply(t, s, move(branch, objects.ID{}, a))
	wantLinked(t, log(t, s, branch, 0, 0), 3)
}
