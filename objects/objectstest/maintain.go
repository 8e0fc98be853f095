package objectstest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// maintains test an engine that is an objects.Maintainer; so do purges. A method may
// return errors.ErrUnsupported.
var maintains = []promise{
	{"Maintain/an audit finds everything and no damage", maintainAudit},
	{"Maintain/an error of the caller ends an audit", maintainAuditEnds},
	{"Maintain/log entries are restored as they are", maintainRestore},
	{"Maintain/a sweep removes what is unreachable and old", maintainSweep},
	{"Maintain/a dry sweep only counts", maintainDrySweep},
	{"Maintain/the size grows with what is put", maintainSize},
}

// maintainer returns nil for an engine that is none.
func maintainer(s objects.Store) objects.Maintainer {
	m, _ := objects.As[objects.Maintainer](s)
	return m
}

func maintainAudit(t *testing.T, s objects.Store) {
	m := maintainer(s)
	if m == nil {
		return
	}
	h := grow(objects.ID{}, "line", 40)
	put(t, s, h.all()...)
	apply(t, s, move(branch, objects.ID{}, h.commits[0]))
	apply(t, s, move("refs/tags/old", objects.ID{}, content("old")))
	purge(t, s, h.contents[3].ID)
	found, purged := map[objects.ID]bool{}, map[objects.ID]bool{}
	var refs []string
	var entries []objects.LogEntry
	err := m.Audit(t.Context(), objects.Audit{
		Begin: func(int) error {
			found, purged, refs, entries = map[objects.ID]bool{}, map[objects.ID]bool{}, nil, nil
			return nil
		},
		Objects: func(list []objects.Object) error {
			for _, o := range list {
				if err := o.Check(); err != nil {
					return err
				}
				found[o.ID] = true
			}
			return nil
		},
		Tombstone: func(b objects.Tombstone) error { purged[b.ID] = true; return nil },
		Ref:       func(r objects.Ref) error { refs = append(refs, r.Name); return nil },
		Entry:     func(e objects.LogEntry) error { entries = append(entries, e); return nil },
		Damage:    func(d objects.Damage) error { t.Errorf("damage: %+v", d); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(h.all(), content("old")) {
		if gone := o.ID == h.contents[3].ID; found[o.ID] == gone || purged[o.ID] != gone {
			t.Errorf("object %s: found %t, purged %t", o.ID.Short(), found[o.ID], purged[o.ID])
		}
	}
	if slices.Sort(refs); !slices.Equal(refs, []string{branch, "refs/tags/old"}) {
		t.Errorf("refs: %v", refs)
	}
	slices.Reverse(entries)
	wantLinked(t, entries, 2)
}

func maintainAuditEnds(t *testing.T, s objects.Store) {
	m := maintainer(s)
	if m == nil {
		return
	}
	put(t, s, content("a"), content("b"))
	enough := errors.New("enough")
	if err := m.Audit(t.Context(), objects.Audit{Objects: func([]objects.Object) error { return enough }}); !errors.Is(err, enough) {
		t.Errorf("an audit that the caller ended: %v", err)
	}
}

func maintainRestore(t *testing.T, s objects.Store) {
	m := maintainer(s)
	if m == nil {
		return
	}
	h := grow(objects.ID{}, "line", 30)
	put(t, s, h.all()...)
	var list []objects.LogEntry
	tip, newest := objects.ID{}, objects.ID{}
	for i, c := range slices.Backward(h.commits) {
		u := objects.RefUpdate{Name: branch, Old: tip, New: c.ID, Prev: newest}
		list = append(list, objects.NewLogEntry(uint64(2*(len(h.commits)-i)), note("again"), []objects.RefUpdate{u}))
		tip, newest = c.ID, list[len(list)-1].Hash
	}
	if err := m.Restore(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	got := log(t, s, branch, 0, 0)
	wantLinked(t, got, 30)
	if slices.Reverse(got); !reflect.DeepEqual(got, list) {
		t.Errorf("the log has %+v, want %+v", got, list)
	}
	if got := target(t, s, branch); got != h.tip() {
		t.Errorf("the branch is at %s, want %s", got.Short(), h.tip().Short())
	}
	conflict := (*objects.ConflictError)(nil)
	if err := m.Restore(t.Context(), list[:1]); !errors.As(err, &conflict) {
		t.Errorf("an entry that does not follow: %v", err)
	}
}

// swept fills a store with a branch and with two objects that no ref leads to, and sweeps
// it of what was put before a time.
func swept(t *testing.T, s objects.Store, o objects.Sweep) (h history, lost []objects.Object, done objects.Swept, ok bool) {
	t.Helper()
	m := maintainer(s)
	if m == nil {
		return h, nil, done, false
	}
	h = grow(objects.ID{}, "line", 40)
	b := move(branch, objects.ID{}, h.commits[0])
	b.Put = h.all()
	apply(t, s, b)
	lost = []objects.Object{content("lost"), content("lost too")}
	put(t, s, lost...)
	done, err := m.Sweep(t.Context(), o)
	if errors.Is(err, errors.ErrUnsupported) {
		return h, nil, done, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, lost, done, true
}

func maintainSweep(t *testing.T, s objects.Store) {
	lost := []objects.Object{content("lost"), content("lost too")}
	h, _, done, ok := swept(t, s, objects.Sweep{Before: time.Now().Add(time.Hour), Keep: ids(lost[1:])})
	if !ok {
		return
	}
	missing, err := s.Missing(t.Context(), ids(append(h.all(), lost...)))
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, missing, ids(lost[:1]))
	if done.Removed != 1 || done.Kept != len(h.all())+1 {
		t.Errorf("swept: %+v", done)
	}
}

func maintainDrySweep(t *testing.T, s objects.Store) {
	h, lost, done, ok := swept(t, s, objects.Sweep{Before: time.Now().Add(time.Hour), Dry: true})
	if !ok {
		return
	}
	if missing, err := s.Missing(t.Context(), ids(append(h.all(), lost...))); err != nil || len(missing) > 0 {
		t.Errorf("a dry sweep removed %d objects: %v", len(missing), err)
	}
	if done.Removed != 2 {
		t.Errorf("swept: %+v", done)
	}
}

func maintainSize(t *testing.T, s objects.Store) {
	m := maintainer(s)
	if m == nil {
		return
	}
	_, before, err := m.Size(t.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) // an engine may compress anything else
	for range 8 {
		data := make([]byte, objects.MaxSize)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		put(t, s, objects.New(objects.KindChunk, nil, nil, data))
	}
	path, after, err := m.Size(t.Context())
	if err != nil || path == "" || after < before+8*objects.MaxSize/2 {
		t.Errorf("size: %q, %d bytes and then %d, %v", path, before, after, err)
	}
}

func checkCopy(t *testing.T, e Engine) {
	s := open(t, e)
	h := grow(objects.ID{}, "line", 100)
	b := move(branch, objects.ID{}, h.commits[0])
	b.Put = h.all()
	apply(t, s, b)
	dir := t.TempDir()
	if err := maintainer(s).Copy(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	apply(t, s, move(branch, h.tip(), content("later")))
	other := e.OpenCopy(t, dir)
	t.Cleanup(func() { _ = other.Close() })
	if got := target(t, other, branch); got != h.tip() {
		t.Errorf("the branch of the copy is at %s, want %s", got.Short(), h.tip().Short())
	}
	if got := commitsOf(t, other, h.tip(), 0); len(got) != 100 {
		t.Errorf("%d commits of 100 are in the copy", len(got))
	}
	wantLinked(t, log(t, other, "", 0, 0), 1)
}
