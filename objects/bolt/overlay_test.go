package bolt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTheJournalLiesOverTheFile: whatever the journal has put, changed or deleted of
// what the file has, a scan from any key, up or down, gives each key once, in order, and
// with the value that is there now.
func TestTheJournalLiesOverTheFile(t *testing.T) {
	s, _ := fresh(t)
	inner(t, s).limit = journalStart + 1<<10
	for i := range 24 {
		apply(t, s, fmt.Sprintf("refs/heads/%02d", 2*i), fmt.Sprint(i))
	}
	h, err := idle(t, s).openRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.side.release()
	defer h.close()
	l := h.look()
	l.over = nil
	file := map[string]string{}
	for e, err := range l.ascend(refsBucket, nil) {
		if err != nil {
			t.Fatal(err)
		}
		value, err := e.value()
		if err != nil {
			t.Fatal(err)
		}
		file[string(e.key)] = string(value)
	}
	if len(file) < 12 {
		t.Fatalf("the file has %d refs", len(file))
	}
	key := rapid.Map(rapid.IntRange(0, 50), func(i int) string { return fmt.Sprintf("refs/heads/%02d", i) })
	rapid.Check(t, func(t *rapid.T) {
		l.over = newOverlay(binding{gen: 1})
		now := maps.Clone(file)
		for i := range rapid.IntRange(0, 20).Draw(t, "edits") {
			k := key.Draw(t, "key")
			c := change{bucket: refsBucket, key: []byte(k)}
			if delete(now, k); rapid.Bool().Draw(t, "put") {
				now[k] = fmt.Sprint("edit ", i)
				c.value = []byte(now[k])
			}
			l.over.add([]change{c}, 0, 0)
		}
		l.seen = l.over.now()
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
			if value, err := e.value(); err != nil || string(value) != now[string(e.key)] {
				t.Fatalf("%s is %q, %v, want %q", e.key, value, err, now[string(e.key)])
			}
			if got = append(got, string(e.key)); len(got) == len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s, down %v:\n%s, want\n%s", from, down, strings.Join(got, " "), strings.Join(want, " "))
		}
	})
}
