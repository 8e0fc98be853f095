package bolt

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// TestTheJournalLiesOverTheFile: whatever the journal has put, changed or deleted of
// what the file has, a scan from any key, up or down, gives each key once, in order, and
// with the value that is there now.
func TestTheJournalLiesOverTheFile(t *testing.T) {
	s, _ := fresh(t)
	inner(t, s).limit = 1 << 10
	for i := range 24 {
		apply(t, s, fmt.Sprintf("refs/heads/%02d", 2*i), fmt.Sprint(i))
	}
	h, err := idle(t, s).openRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.side.release()
	defer h.close()
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

// TestRefsByTimeWhenARefIsDamaged folds a move of a ref that cannot be read where it lies:
// what goes into the order of time is what the journal says of it, without the page.
func TestRefsByTimeWhenARefIsDamaged(t *testing.T) {
	m := newSample(t, 3)
	now, err := page.ReadMeta(bytes.NewReader(m.file), int64(len(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	l := newSnapshot(bytes.NewReader(m.file), now)
	was, err := l.ref("refs/heads/main")
	if err != nil || was.Target.IsZero() {
		t.Fatal(err)
	}
	moved := was
	moved.Updated = was.Updated.Add(time.Second)
	mem := memtable.New(len(buckets))
	mem.Add([]journal.Change{
		setKey(refsBucket, []byte(was.Name), encodeRef(moved)),
		deleteKey(recentBucket, recentKey(was.Ref)),
		setKey(recentBucket, recentKey(moved.Ref), []byte{}),
	})
	h := &handle{mem: mem, mark: mem.Mark()}
	under := func(file []byte) []journal.Change {
		_, list := h.journaled(newSnapshot(bytes.NewReader(file), now))
		list = slices.DeleteFunc(list, func(c journal.Change) bool { return c.Bucket != recentBucket })
		slices.SortFunc(list, func(a, b journal.Change) int { return bytes.Compare(a.Key, b.Key) })
		return list
	}
	whole := under(m.file)
	if len(whole) != 2 {
		t.Fatalf("a move of a ref gives %d changes", len(whole))
	}
	e, ok, err := l.find(refsBucket, []byte(was.Name))
	if err != nil || !ok || e.Page() == nil {
		t.Fatal(err)
	}
	value, err := e.Raw(nil)
	at := bytes.Index(m.file, value)
	if err != nil || at < 0 || bytes.Count(m.file[at+1:], value) > 0 {
		t.Fatalf("the ref is not in the file, or twice: %v", err)
	}
	m.file[at+len(value)-1] ^= 1
	if _, err := newSnapshot(bytes.NewReader(m.file), now).ref(was.Name); err == nil {
		t.Fatal("the ref is not damaged")
	}
	if got := under(m.file); !reflect.DeepEqual(got, whole) {
		t.Errorf("over a damaged ref the order of time has %+v, want %+v", got, whole)
	}
}
