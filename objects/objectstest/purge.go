package objectstest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// purges test Purge of an engine that is an objects.Maintainer.
var purges = []promise{
	{"Purge/a tombstone stands in its place", purgeOne},
	{"Purge/what is read with it is read all the same", purgeBeside},
	{"Purge/all or none", purgeAll},
	{"Purge/what histories are made of is never purged", purgeKinds},
	{"Purge/the first tombstone stays", purgeTwice},
	{"Purge/a tombstone of what never came", purgeAbsent},
	{"Purge/a copy leaves it purged", purgeCopies},
	{"Purge/what is said anew is there again", purgeAgain},
	{"Purge/what was worked out is forgotten", purgeMemo},
}

func canPurge(s objects.Store) bool {
	_, ok := objects.As[objects.Maintainer](s)
	return ok
}

func purge(t *testing.T, s objects.Store, ids ...objects.ID) int {
	t.Helper()
	n, err := objects.Purge(t.Context(), s, tombstones(ids...), nil)
	if err != nil {
		t.Fatalf("purge: %v", err)
	}
	return n
}

func tombstones(ids ...objects.ID) (list []objects.Tombstone) {
	for _, id := range ids {
		list = append(list, objects.Tombstone{ID: id, Time: noon, Why: "old", Remains: []byte("left")})
	}
	return list
}

// wantPurged wants that an object reads as its tombstone.
func wantPurged(t *testing.T, s objects.Store, o objects.Object) {
	t.Helper()
	_, err := objects.Read(t.Context(), s, o.ID)
	var e *objects.PurgedError
	ok := errors.As(err, &e)
	if !ok || !errors.Is(err, objects.ErrPurged) || !strings.Contains(err.Error(), "purged 2026-07-01: old") {
		t.Fatalf("a purged object reads as %v", err)
	}
	want := tombstones(o.ID)[0]
	want.Kind, want.Size = o.Kind, int64(len(o.Data))
	if e.ID != want.ID || e.Kind != want.Kind || e.Size != want.Size || !e.Time.Equal(want.Time) || e.Why != want.Why || !bytes.Equal(e.Remains, want.Remains) {
		t.Errorf("the tombstone is %+v, want %+v", e.Tombstone, want)
	}
	if missing, err := s.Missing(t.Context(), []objects.ID{o.ID}); len(missing) > 0 || err != nil {
		t.Errorf("a purged object is missing: %v, %v", missing, err)
	}
	for _, kind := range []objects.Kind{0, o.Kind} {
		if ids, err := s.Find(t.Context(), kind, o.ID.String()[:10], 0); !slices.Equal(ids, []objects.ID{o.ID}) || err != nil {
			t.Errorf("a purged object is not found: %v, %v", ids, err)
		}
	}
	if ids, err := s.Find(t.Context(), objects.KindCommit, o.ID.String()[:10], 0); len(ids) > 0 || err != nil {
		t.Errorf("a purged object is found as a commit: %v, %v", ids, err)
	}
}

func purgeOne(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	small, long := content("small"), content(strings.Repeat("long", 5000))
	label := objects.New(objects.KindLabel, nil, nil, []byte("words on it"))
	put(t, s, small, long, label, content("stays"))
	if n := purge(t, s, small.ID, long.ID, label.ID, small.ID); n != 3 {
		t.Errorf("%d were purged, want 3", n)
	}
	for _, o := range []objects.Object{small, long, label} {
		wantPurged(t, s, o)
	}
	if _, err := objects.Read(t.Context(), s, content("stays").ID); err != nil {
		t.Error(err)
	}
}

func purgeBeside(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	const n = 600
	h := grow(objects.ID{}, "line", n)
	apply(t, s, objects.Batch{Put: h.all(), Refs: []objects.RefUpdate{{Name: branch, New: h.tip()}}, Note: note("grow")})
	var gone []objects.ID
	for i := 0; i < n; i += 3 {
		gone = append(gone, h.contents[i].ID)
	}
	purge(t, s, gone...)
	there, purged := 0, 0
	count := func(_ objects.Object, err error) {
		switch {
		case err == nil:
			there++
		case errors.Is(err, objects.ErrPurged):
			purged++
		default:
			t.Fatal(err)
		}
	}
	for o, err := range s.Get(t.Context(), ids(h.contents)) {
		count(o, err)
	}
	if there != n-n/3 || purged != n/3 {
		t.Errorf("get: %d there and %d purged of %d", there, purged, n)
	}
	there, purged = 0, 0
	for o, err := range ChainWithContent(t.Context(), s, h.tip()) {
		count(o, err)
	}
	if there != 2*n-n/3 || purged != n/3 {
		t.Errorf("chain: %d there and %d purged of %d", there, purged, n)
	}
	if ref, err := objects.ReadRef(t.Context(), s, branch); err != nil || ref.Target != h.tip() {
		t.Errorf("the branch is at %v, %v", ref.Target, err)
	}
}

func purgeAll(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	o := content("here")
	put(t, s, o)
	for what, id := range map[string]objects.ID{"an absent one": content("absent").ID} {
		if _, err := objects.Purge(t.Context(), s, tombstones(o.ID, id), nil); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("purge of %s: %v", what, err)
		}
	}
	long := tombstones(o.ID)
	long[0].Why = strings.Repeat("w", 1<<10+1)
	if _, err := objects.Purge(t.Context(), s, long, nil); !errors.Is(err, objects.ErrLimit) {
		t.Errorf("a long reason: %v", err)
	}
	if _, err := objects.Read(t.Context(), s, o.ID); err != nil {
		t.Errorf("it went all the same: %v", err)
	}
}

func purgeKinds(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	words := content("words")
	put(t, s, words)
	for kind := objects.KindCommit; kind.Valid(); kind++ {
		o := objects.New(kind, nil, nil, []byte("of this kind"))
		put(t, s, o)
		_, err := objects.Purge(t.Context(), s, tombstones(o.ID, words.ID), nil)
		if kind == objects.KindCommit || kind == objects.KindOrigin || kind == objects.KindManifest {
			if err == nil || !strings.Contains(err.Error(), "never purged") {
				t.Errorf("purge of a %s: %v", kind, err)
			}
			if _, err := objects.Read(t.Context(), s, o.ID); err != nil {
				t.Errorf("a %s is gone: %v", kind, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("purge of a %s: %v", kind, err)
		}
	}
}

func purgeTwice(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	o := content("once")
	put(t, s, o)
	purge(t, s, o.ID)
	again := tombstones(o.ID)
	again[0].Why = "another reason"
	if n, err := objects.Purge(t.Context(), s, again, nil); n != 0 || err != nil {
		t.Errorf("purged again: %d, %v", n, err)
	}
	wantPurged(t, s, o)
}

func purgeAbsent(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	o := content("elsewhere")
	list := tombstones(o.ID)
	list[0].Kind, list[0].Size = o.Kind, int64(len(o.Data))
	if n, err := objects.Purge(t.Context(), s, list, nil); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	wantPurged(t, s, o)
}

func purgeCopies(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	o, fresh := content("was said"), content("never said")
	put(t, s, o)
	purge(t, s, o.ID)
	apply(t, s, objects.Batch{Put: []objects.Object{o, fresh}, Copies: true})
	wantPurged(t, s, o)
	if _, err := objects.Read(t.Context(), s, fresh.ID); err != nil {
		t.Error(err)
	}
}

func purgeAgain(t *testing.T, s objects.Store) {
	if !canPurge(s) {
		return
	}
	for _, o := range []objects.Object{content("small"), content(strings.Repeat("long", 5000))} {
		put(t, s, o)
		purge(t, s, o.ID)
		put(t, s, o)
		got, err := objects.Read(t.Context(), s, o.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantObjects(t, []objects.Object{got}, []objects.Object{o})
		if n := purge(t, s, o.ID); n != 1 {
			t.Errorf("%d were purged the second time", n)
		}
		wantPurged(t, s, o)
	}
}

func purgeMemo(t *testing.T, s objects.Store) {
	m, ok := s.(objects.Cacher)
	if !canPurge(s) || !ok {
		return
	}
	o := content("remembered")
	put(t, s, o)
	m.Cache().Get("key", func() any { return "worked out from it" })
	purge(t, s, o.ID)
	if got := m.Cache().Get("key", func() any { return "anew" }); got != "anew" {
		t.Errorf("the store remembers what was %v", got)
	}
}
