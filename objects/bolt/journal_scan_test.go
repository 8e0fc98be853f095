package bolt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// TestScanMergesJournalAndFile puts, changes and deletes keys of the file in the journal. A scan
// from any key, in either direction, yields each key once, in order, with its present value.
func TestScanMergesJournalAndFile(t *testing.T) {
	s, _ := fresh(t)
	inner(t, s).checkpointLength = 1 << 10
	for i := range 24 {
		apply(t, s, fmt.Sprintf("refs/heads/%02d", 2*i), fmt.Sprint(i))
	}
	h, err := idle(t, s).lockAndOpen(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer h.lock.release()
	defer h.closeFiles()
	l := h.snapshot()
	l.mem = nil
	file := map[string]string{}
	for e, err := range l.ascend(refsBucket, nil) {
		if err != nil {
			t.Fatal(err)
		}
		value, err := e.Value()
		if err != nil {
			t.Fatal(err)
		}
		file[string(e.Key)] = string(value)
	}
	if len(file) < 12 {
		t.Fatalf("the file has %d refs", len(file))
	}
	key := rapid.Map(rapid.IntRange(0, 50), func(i int) string { return fmt.Sprintf("refs/heads/%02d", i) })
	rapid.Check(t, func(t *rapid.T) {
		l.mem = memtable.New(len(buckets))
		now := maps.Clone(file)
		for i := range rapid.IntRange(0, 20).Draw(t, "edits") {
			k := key.Draw(t, "key")
			c := deleteKey(refsBucket, []byte(k))
			if delete(now, k); rapid.Bool().Draw(t, "put") {
				now[k] = fmt.Sprint("edit ", i)
				c.Value = []byte(now[k])
			}
			l.mem.Add([]journal.Change{c})
		}
		l.mark = l.mem.Mark()
		from, down := key.Draw(t, "from"), rapid.Bool().Draw(t, "down")
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(k string) bool { return (k < from) != down })
		scan := l.ascend
		if down {
			slices.Reverse(want)
			scan = l.descend
		}
		want = want[:min(len(want), rapid.IntRange(1, 60).Draw(t, "most"))]
		got := []string{}
		for e, err := range scan(refsBucket, []byte(from)) {
			if err != nil {
				t.Fatal(err)
			}
			if value, err := e.Value(); err != nil || string(value) != now[string(e.Key)] {
				t.Fatalf("%s is %q, %v, want %q", e.Key, value, err, now[string(e.Key)])
			}
			if got = append(got, string(e.Key)); len(got) == len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s, down %v:\n%s, want\n%s", from, down, strings.Join(got, " "), strings.Join(want, " "))
		}
	})
}
