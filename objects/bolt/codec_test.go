package bolt

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// packing sweeps a store that others write to when somebody reads what was written: in the
// long form every time, in the others every second or third.
type packing struct {
	objects.Store
	looks   atomic.Int32
	fresh   atomic.Bool
	writing atomic.Int32
}

func (p *packing) Unwrap() objects.Store { return p.Store }

func (p *packing) pack(ctx context.Context) {
	if p.writing.Load() > 0 || !p.fresh.Swap(false) { // who writes may read, and waits for nobody
		return
	}
	if (p.looks.Add(1)-1)%int32(rounds(3, 3, 1)) != 0 {
		return
	}
	c, _ := objects.As[objects.Maintainer](p.Store)
	_, _ = c.Sweep(context.WithoutCancel(ctx), objects.Sweep{}) // a store that is closed stays as it is
}

func (p *packing) write(do func() error) error {
	p.writing.Add(1)
	defer p.writing.Add(-1)
	p.fresh.Store(true)
	return do()
}

func (p *packing) Apply(ctx context.Context, b objects.Batch) error {
	return p.write(func() error { return p.Store.Apply(ctx, b) })
}

func (p *packing) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	return p.write(func() error { return p.Store.Update(ctx, ref, f) })
}

func (p *packing) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	p.pack(ctx)
	return p.Store.Get(ctx, ids)
}

func (p *packing) Missing(ctx context.Context, ids []objects.ID) ([]objects.ID, error) {
	p.pack(ctx)
	return p.Store.Missing(ctx, ids)
}

func (p *packing) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) ([]objects.ID, error) {
	p.pack(ctx)
	return p.Store.Find(ctx, kind, prefix, limit)
}

func (p *packing) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	p.pack(ctx)
	return p.Store.Chain(ctx, tip, o)
}

func (p *packing) Log(ctx context.Context, name string, before uint64, limit int) ([]objects.LogEntry, error) {
	p.pack(ctx)
	return p.Store.Log(ctx, name, before, limit)
}

// TestPackedStoreConformance runs the conformance suite on a store that is packed before every new
// view.
func TestPackedStoreConformance(t *testing.T) {
	paths := map[objects.Store]string{}
	open := func(t *testing.T, path string) objects.Store {
		p := &packing{Store: mustOpen(t, path, objects.Options{Create: true})}
		paths[p] = path
		return p
	}
	objectstest.Run(t, objectstest.Engine{
		Open:     func(t *testing.T) objects.Store { return open(t, filepath.Join(t.TempDir(), "store")) },
		OpenCopy: func(t *testing.T, dir string) objects.Store { return mustOpen(t, dir, objects.Options{}) },
		Reopen: func(t *testing.T, closed objects.Store) objects.Store {
			return open(t, paths[closed])
		},
	})
}

// TestPackedStoreEqualsUnpackedStore, and takes less room.
func TestPackedStoreEqualsUnpackedStore(t *testing.T) {
	path, m := large(t, 700)
	s := mustOpen(t, path, objects.Options{})
	got := sweep(t, s, objects.Sweep{})
	if got.Removed != 0 || got.SizeAfter*2 > got.SizeBefore {
		t.Errorf("%+v", got)
	}
	if found := wantClean(t, path); !m.isIn(found) {
		t.Error("it is not all there")
	}
	for id, want := range m.objects { // one by one, and not in order
		if o, err := objects.Read(t.Context(), s, id); err != nil || !same(o, want) {
			t.Fatalf("object %s: %v", id.Short(), err)
		}
	}
	n := 0
	for o, err := range objectstest.ChainWithContent(t.Context(), s, m.tip) {
		if n++; err != nil || !same(o, m.objects[o.ID]) {
			t.Fatalf("object %s of the chain: %v", o.ID.Short(), err)
		}
	}
	if n != len(m.objects) {
		t.Errorf("a chain of %d objects of %d", n, len(m.objects))
	}
	before := got.SizeAfter
	if got = sweep(t, s, objects.Sweep{}); got.SizeAfter > before {
		t.Errorf("packed twice it takes %d bytes, and took %d", got.SizeAfter, before)
	}
	if err := appendOne(t, s, "main", 1); err != nil {
		t.Errorf("append after it: %v", err)
	}
}

// TestFlipsInAPackedStore flips one bit at a time in a store that is packed closely,
// every second in the first bytes of what is in zstd. It is told or harmless, no
// object is wrong, and what can be saved is saved.
func TestFlipsInAPackedStore(t *testing.T) {
	path, m := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	sweep(t, s, objects.Sweep{})
	_ = s.Close()
	files := takeFiles(t, path)
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd} // of zstd
	var frames []int
	for at := 0; ; at += len(magic) {
		next := bytes.Index(files[path][at:], magic)
		if next < 0 {
			break
		}
		at += next
		frames = append(frames, at)
	}
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	told, lost := 0, 0
	flips := rounds(8, 12, 3000)
	for i := range flips {
		b := bytes.Clone(files[path])
		bit := r.IntN(len(b) * 8)
		if i%2 == 0 {
			bit = 8*frames[r.IntN(len(frames))] + r.IntN(200)
		}
		b[bit/8] ^= 1 << (bit % 8)
		files.put(t)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := audit(t, path, false)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		if len(got.harm()) > 0 {
			told++
		} else if !m.isIn(got) {
			t.Errorf("bit %d: nothing was told, and it is not all there", bit)
		}
		if got, err = audit(t, path, true); err != nil {
			t.Errorf("bit %d: salvage: %v", bit, err)
		}
		lost += m.lostIn(got)
		m.wantNothingElse(t, path, bit)
	}
	t.Logf("%d of %d flips were told, the others harmless; %d objects of %d were lost by each", told, flips, lost/flips, len(m.objects))
	if told < flips/4 { // some frames lie in pages that are free
		t.Errorf("only %d of %d flips were told", told, flips)
	}
}

// wantNothingElse reads a store that may be damaged in every way.
func (m sample) wantNothingElse(t *testing.T, path string, bit int) {
	t.Helper()
	s, err := objects.Open(t.Context(), path, objects.Options{})
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	check := func(o objects.Object, err error) {
		if err != nil && !errors.Is(err, objects.ErrCorrupt) && !errors.Is(err, objects.ErrNotFound) || err == nil && !same(o, m.objects[o.ID]) {
			t.Errorf("bit %d: object %s: %v", bit, o.ID.Short(), err)
		}
	}
	ids := slices.Collect(maps.Keys(m.objects))
	for o, err := range s.Get(t.Context(), ids) {
		check(o, err)
	}
	for o, err := range s.Get(t.Context(), ids[:1]) {
		check(o, err)
	}
	for o, err := range objectstest.ChainWithContent(t.Context(), s, m.tip) {
		check(o, err)
	}
	if _, err := s.Log(t.Context(), "", 0, 0); err != nil && !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("bit %d: log: %v", bit, err)
	}
}
