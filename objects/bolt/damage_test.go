package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// wantSound lets bbolt check the whole file.
func wantSound(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// sample is the file of a small store with branches in its larger trees, and
// what it holds.
type sample struct {
	file    []byte
	journal []byte
	objects map[objects.ID]objects.Object
	refs    map[string]objects.ID
	tip     objects.ID
}

func newSample(t testing.TB, commits int) sample {
	t.Helper()
	s, path := fresh(t)
	m := sample{objects: map[objects.ID]objects.Object{}, refs: map[string]objects.ID{}}
	for i := range commits {
		c := object(fmt.Sprint(i, strings.Repeat("x", i*37%3000)))
		var parents []objects.ID
		if !m.tip.IsZero() {
			parents = []objects.ID{m.tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, nil)
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{
			{Name: "refs/heads/main", Old: m.tip, New: k.ID}, {Name: fmt.Sprint("refs/tags/", i), New: k.ID},
		}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		m.objects[c.ID], m.objects[k.ID], m.tip = c, k, k.ID
		m.refs["refs/heads/main"], m.refs[fmt.Sprint("refs/tags/", i)] = k.ID, k.ID
	}
	mustCheckpoint(t, s)
	m.file, m.journal = mustRead(t, path), mustRead(t, journalPath(path))
	return m
}

// typed are the kinds of error that a damaged file may give.
var typed = []error{objects.ErrCorrupt, objects.ErrNotFound, objects.ErrFormat}

func wantTyped(t *testing.T, what string, err error) {
	t.Helper()
	for _, kind := range typed {
		if errors.Is(err, kind) {
			return
		}
	}
	var conflict *objects.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		t.Errorf("%s: %v is of no kind", what, err)
	}
}

// tryAll does all that a store can do with a file, and checks that every answer
// is right or an error of the right kind. It tells whether there was an error.
func (m sample) tryAll(t *testing.T, what, path string) (noticed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	before := mustRead(t, path)
	s, err := objects.Open(ctx, path, objects.Options{Wait: time.Second})
	if !bytes.Equal(mustRead(t, path), before) {
		t.Errorf("%s: opening has changed the file", what)
	}
	if err != nil {
		wantTyped(t, what, err)
		return true
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
	}()
	note := func(err error) {
		wantTyped(t, what, err)
		noticed = noticed || err != nil
	}
	var ids []objects.ID
	for id := range m.objects {
		ids = append(ids, id)
	}
	got := 0
	var alone sync.Mutex
	check := func(o objects.Object, err error) {
		if note(err); err == nil {
			if got++; !bytes.Equal(o.Data, m.objects[o.ID].Data) {
				t.Errorf("%s: object %s has wrong bytes", what, o.ID.Short())
			}
		}
	}
	for o, err := range s.Get(ctx, ids) {
		check(o, err)
	}
	noticed = noticed || got != len(ids) // a search that misses is a NotFoundError further up
	for o, err := range objectstest.ChainWithContent(ctx, s, m.tip) {
		check(o, err)
	}
	locators := map[objects.ID]objects.Locator{}
	for run, err := range objects.ChainRuns(ctx, s, m.tip, 0) {
		note(err)
		for _, o := range run.Objects {
			check(o, nil)
		}
		maps.Copy(locators, objectstest.Locators(&run))
	}
	note(objects.Load(ctx, s, objects.LoadRequest{
		Len: len(ids),
		At:  func(i int) (objects.ID, objects.Locator) { return ids[i], locators[ids[i]] },
		Give: func(_ int, o *objects.Object, err error) error {
			alone.Lock()
			defer alone.Unlock()
			check(*o, err)
			return nil
		},
	}))
	for _, newest := range []bool{false, true} {
		refs, err := s.Refs(ctx, objects.RefQuery{Newest: newest})
		note(err)
		for _, r := range refs {
			if m.refs[r.Name] != r.Target {
				t.Errorf("%s: ref %s is at %s", what, r.Name, r.Target.Short())
			}
		}
		noticed = noticed || len(refs) != len(m.refs)
	}
	_, err = s.Log(ctx, "", 0, 0)
	note(err)
	for name := range m.refs {
		_, err = s.Log(ctx, name, 0, 0)
		note(err)
	}
	_, err = s.Find(ctx, objects.KindCommit, "", 0)
	note(err)
	for _, b := range []objects.Batch{
		batch("refs/heads/new", strings.Repeat("new", 2000)),
		{Refs: []objects.RefUpdate{{Name: "refs/tags/1", Old: m.refs["refs/tags/1"]}}},
	} {
		before := mustRead(t, path)
		err := s.Apply(ctx, b)
		if note(err); err != nil && !bytes.Equal(mustRead(t, path), before) {
			t.Errorf("%s: a batch was refused and the file has changed: %v", what, err)
		}
	}
	before = mustRead(t, path)
	err = tryCheckpoint(t, s)
	if note(err); err != nil && !bytes.Equal(mustRead(t, path), before) {
		t.Errorf("%s: there was no checkpoint, and the file has changed: %v", what, err)
	}
	note(appendOne(t, s, "new", 1))
	return noticed
}

// tryCheckpoint makes a checkpoint, which may fail because of damage.
func tryCheckpoint(t testing.TB, s objects.Store) error {
	in := idle(t, s)
	h, err := in.lockAndOpen(t.Context(), true)
	if err != nil {
		return in.explain("write", err)
	}
	in.mu.Lock()
	in.openHandles++
	in.mu.Unlock()
	defer in.closeHandle(h)
	return in.checkpoint(h, h.mark)
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (m sample) with(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	_ = os.Remove(gatePath(path)) // what was acknowledged by the one before
	err := os.WriteFile(path, change(bytes.Clone(m.file)), 0o600)
	if err = errors.Join(err, os.WriteFile(journalPath(path), m.journal, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestFilesThatAreNotAStore(t *testing.T) {
	m := newSample(t, 40)
	r := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "x.db")
	for name, change := range map[string]func(b []byte) []byte{
		"empty":            func([]byte) []byte { return nil },
		"one byte":         func(b []byte) []byte { return b[:1] },
		"half a page":      func(b []byte) []byte { return b[:2048] },
		"one page":         func(b []byte) []byte { return b[:4096] },
		"two pages":        func(b []byte) []byte { return b[:8192] },
		"cut in half":      func(b []byte) []byte { return b[:len(b)/2] },
		"text":             func([]byte) []byte { return []byte(strings.Repeat("no store\n", 5000)) },
		"zeros":            func(b []byte) []byte { return make([]byte, len(b)) },
		"no meta pages":    func(b []byte) []byte { clear(b[:8192]); return b },
		"only meta pages":  func(b []byte) []byte { clear(b[8192:]); return b },
		"noise":            func(b []byte) []byte { return noise(r, b) },
		"noise after meta": func(b []byte) []byte { return append(b[:8192:8192], noise(r, b[8192:])...) },
		"first meta twice": func(b []byte) []byte { copy(b[4096:8192], b[:4096]); return b },
		"pages in reverse": func(b []byte) []byte { return reversed(b) },
	} {
		m.with(t, path, change)
		if noticed := m.tryAll(t, name, path); !noticed {
			t.Errorf("%s: nothing was noticed", name)
		}
	}
}

func noise(r *rand.Rand, b []byte) []byte {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func reversed(b []byte) []byte {
	var out []byte
	for at := len(b) - 4096; at >= 8192; at -= 4096 {
		out = append(out, b[at:at+4096]...)
	}
	return append(b[:8192:8192], out...)
}

// TestBitFlips changes one bit at a time: anywhere, and in the headers and
// elements of pages, where it does the most. No answer may be wrong, no call may
// crash or hang.
func TestBitFlips(t *testing.T) {
	flips := 120
	if testing.Short() {
		flips = 40
	}
	m := newSample(t, 40)
	r := rand.New(rand.NewPCG(5, uint64(time.Now().UnixNano())))
	path := filepath.Join(t.TempDir(), "x.db")
	noticed := 0
	for i := range flips {
		bit := r.IntN(len(m.file) * 8)
		if i%2 == 0 {
			bit = r.IntN(len(m.file)/4096)*4096*8 + r.IntN(160*8)
		}
		m.with(t, path, func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
		if m.tryAll(t, fmt.Sprintf("bit %d of page %d", bit%(4096*8), bit/(4096*8)), path) {
			noticed++
		}
	}
	t.Logf("%d of %d flips were noticed; the others hit what is not in use", noticed, flips)
	if noticed == 0 {
		t.Error("no flip was noticed")
	}
}

// TestPutOfAnObjectThatIsDamaged says again what is damaged where it lies: it can be
// read from then on, from the journal and from the file, and what is damaged is told.
func TestPutOfAnObjectThatIsDamaged(t *testing.T) {
	m := newSample(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	o := object("2" + strings.Repeat("x", 74))
	if bytes.Count(m.file, o.Data) != 1 {
		t.Fatal("the object is not in the file, or twice")
	}
	m.with(t, path, func(b []byte) []byte { b[bytes.Index(b, o.Data)] = '3'; return b })
	s := mustOpen(t, path, objects.Options{})
	var corrupt *objects.CorruptError
	if _, err := objects.Read(t.Context(), s, o.ID); !errors.As(err, &corrupt) || corrupt.ID != o.ID {
		t.Errorf("read: %v, want a CorruptError that names the object", err)
	}
	look := func(when string) {
		for id, other := range m.objects { // those that lie beside it are no worse
			if got, err := objects.Read(t.Context(), s, id); err != nil || !bytes.Equal(got.Data, other.Data) {
				t.Errorf("%s: object %s: %v", when, id.Short(), err)
			}
		}
		n := 0
		for got, err := range objectstest.ChainWithContent(t.Context(), s, m.tip) {
			if n++; err != nil && (!errors.As(err, &corrupt) || corrupt.ID != o.ID) || err == nil && !bytes.Equal(got.Data, m.objects[got.ID].Data) {
				t.Errorf("%s: object %s in a chain: %v", when, got.ID.Short(), err)
			}
		}
		if n != len(m.objects) {
			t.Errorf("%s: a chain of %d objects has %d", when, len(m.objects), n)
		}
		idle(t, s)
		if got, err := audit(t, path, true); err != nil || len(got.damages) == 0 {
			t.Errorf("%s: nobody is told of the damage: %v", when, err)
		}
	}
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
		t.Errorf("put: %v", err)
	}
	look("in the journal")
	for i := range 5 { // until the runs of the index are joined
		mustCheckpoint(t, s)
		apply(t, s, fmt.Sprint("refs/heads/other", i), fmt.Sprint("something else ", i))
	}
	look("in the file")
}

// TestNewerBboltFormat reports a file of a later bbolt format as such, with commands and
// with fsck, and a flipped bit in the version as damage.
func TestNewerBboltFormat(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/a", "a")
	_ = s.Close()
	file := mustRead(t, path)
	m, err := page.ReadMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, newer := range []bool{true, false} {
		b := bytes.Clone(file)
		for _, at := range []int{0, m.PageSize} {
			head := b[at+page.HeaderSize : at+page.HeaderSize+page.MetaSize]
			page.Order.PutUint32(head[4:], page.Version+1)
			if newer {
				sum := fnv.New64a()
				_, _ = sum.Write(head[:56])
				page.Order.PutUint64(head[56:], sum.Sum64())
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		want, says := objects.ErrCorrupt, "checksum"
		if newer {
			want, says = objects.ErrFormat, "bbolt file format 3"
		}
		_, err := objects.Open(t.Context(), path, objects.Options{})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("newer %t: open: %v", newer, err)
		}
		got, err := audit(t, path, true)
		if newer && (!errors.Is(err, objects.ErrFormat) || len(got.damages) > 0) || !newer && (err != nil || len(got.damages) == 0) {
			t.Errorf("newer %t: audit: %+v, %v", newer, got.damages, err)
		}
	}
}

// TestStoreTooLargeToMap gives a store the limit of a 32-bit program: what the journal
// has no room for is refused by name, and reading goes on.
func TestStoreTooLargeToMap(t *testing.T) {
	if got := mapLimit(32); got != 1<<31-1 {
		t.Errorf("the limit with 32 bits: %d", got)
	}
	if got := mapLimit(64); got != math.MaxInt64 {
		t.Errorf("the limit with 64 bits: %d", got)
	}
	s, path := fresh(t)
	in := inner(t, s)
	in.maxMapSize = 1 << 20
	apply(t, s, "refs/heads/a", "a")
	large := object(strings.Repeat("large", 200<<10))
	err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{large}})
	if !errors.Is(err, objects.ErrReadOnly) || !strings.Contains(err.Error(), "64-bit") || !strings.Contains(err.Error(), path) {
		t.Fatalf("a large batch: %v", err)
	}
	apply(t, s, "refs/heads/b", "b")
	in.maxMapSize = 64 << 10
	if _, err := in.Sweep(t.Context(), objects.Sweep{}); !errors.Is(err, objects.ErrReadOnly) {
		t.Errorf("gc: %v", err)
	}
	if refs, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil || len(refs) != 2 {
		t.Errorf("%d refs, %v", len(refs), err)
	}
	in.maxMapSize = mapLimit(64)
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{large}}); err != nil {
		t.Error(err)
	}
}

func TestFormats(t *testing.T) {
	for name, c := range map[string]struct {
		bucket string
		key    []byte
		value  []byte
		want   error
		says   string
	}{
		"another bbolt file": {"things", []byte("k"), []byte("v"), objects.ErrFormat, "no tract store"},
		"no format":          {buckets[metaBucket], []byte("k"), []byte("v"), objects.ErrFormat, "no tract store"},
		"a newer format":     {buckets[metaBucket], formatKey, encodeFormat(formatVersion + 1), objects.ErrFormat, "upgrade tract"},
		"an older format":    {buckets[metaBucket], formatKey, encodeFormat(formatVersion - 1), objects.ErrFormat, "never released"},
		"a spoilt format":    {buckets[metaBucket], formatKey, []byte("v"), objects.ErrCorrupt, "format"},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(c.bucket))
			if err != nil {
				return err
			}
			return b.Put(c.key, c.value)
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		_, err = objects.Open(t.Context(), path, objects.Options{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasSuffix(name, "er format") {
			continue
		}
		got, err := audit(t, path, true)
		if !errors.Is(err, objects.ErrFormat) || !strings.Contains(err.Error(), c.says) || len(got.damages) > 0 {
			t.Errorf("an audit of %s: %+v, %v", name, got.damages, err)
		}
	}
}

func TestErrorsOfTheSystemKeepTheirNumber(t *testing.T) {
	s := &store{path: "/x/tract.db"}
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EDQUOT} {
		flat := fmt.Errorf("file resize error: %s", &os.PathError{Op: "truncate", Path: "/x/tract.db", Err: number})
		err := s.explain("write", restoreErrno(flat))
		if !errors.Is(err, number) || errors.Is(err, objects.ErrCorrupt) || !strings.HasPrefix(err.Error(), "write store /x/tract.db: ") {
			t.Errorf("%v lost its number: %v", number, err)
		}
	}
}

// TestBucketWhoseNameIsDamaged flips a bit in the name of a bucket. The file is a store
// still, and a damaged one.
func TestBucketWhoseNameIsDamaged(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 50)
	sweep(t, s, objects.Sweep{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(buckets[objectsBucket]), []byte("objectr"))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = objects.Read(t.Context(), mustOpen(t, path, objects.Options{}), object("never put").ID)
	if !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("objects without their bucket: %v", err)
	}
}
