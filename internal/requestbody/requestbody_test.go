package requestbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
)

func newStore(t *testing.T) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), "mem:", objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s objects.Store, list ...objects.Object) {
	t.Helper()
	if err := s.Apply(t.Context(), objects.Batch{Put: list}); err != nil {
		t.Fatal(err)
	}
}

// uncached is a store without a cache, so that every body is read from its objects.
type uncached struct{ objects.Store }

// store stores bodies, each as a difference to the one before it.
func store(t *testing.T, s objects.Store, list ...[]byte) (ids []objects.ID, size int) {
	t.Helper()
	var base *Body
	for _, data := range list {
		b, made := Encode(data, false, base)
		put(t, s, made...)
		for _, o := range made {
			size += len(o.Data)
		}
		base, ids = b, append(ids, b.ID)
	}
	return ids, size
}

func want(t *testing.T, s objects.Store, ids []objects.ID, list [][]byte) {
	t.Helper()
	for i, id := range ids {
		b, err := Read(t.Context(), s, id)
		if err != nil || !bytes.Equal(b.Data, list[i]) || b.ID != id {
			t.Fatalf("body %d of %d bytes was not read: %v", i, len(list[i]), err)
		}
	}
}

// TestCapturedBodies stores the bodies of every captured client, and reads them back byte for byte.
func TestCapturedBodies(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	folders, err := filepath.Glob(filepath.Join(shared, "clients", "*", "manifest.json"))
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	count, total, last := 0, 0, 0
	for _, path := range folders {
		var m struct {
			Exchanges []struct{ Session, Agent, Kind, Request string }
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		threads := map[string][][]byte{}
		for _, e := range m.Exchanges {
			if body, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Request)); err == nil {
				key := fmt.Sprint(e.Session, e.Agent, e.Kind)
				threads[key] = append(threads[key], body)
				count++
			}
		}
		for _, bodies := range threads {
			s := newStore(t)
			ids, size := store(t, s, bodies...)
			want(t, uncached{s}, ids, bodies)
			want(t, s, ids, bodies)
			total += size
			_, whole := store(t, newStore(t), bodies[len(bodies)-1])
			last += whole
		}
	}
	if count < 150 || total > last*11/10 {
		t.Errorf("%d bodies take %d bytes, the last ones alone %d", count, total, last)
	}
}

// TestBodies: every change of a body, of any size, can be read back.
func TestBodies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3<<20) // larger than an object
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	list := [][]byte{
		{},
		[]byte("a"), []byte("ab"), []byte("b"), []byte("abcdefgh"), []byte("abcdefghi"), []byte("xabcdefghi"), []byte("abcdefghi"), []byte("abcdefghi"),
		{},
		noise[:1000], noise[500:1500], noise[:1<<20], noise, append([]byte("front"), noise...), noise[:len(noise)-7], noise[1<<20:], []byte("end"),
		[]byte(strings.Repeat("text ", 1<<20)), []byte(strings.Repeat("text ", 1<<20) + "more"), bytes.Repeat([]byte("0"), MaxSize),
	}
	for range 100 {
		a := list[r.IntN(len(list))]
		cut, from := r.IntN(len(a)+1), r.IntN(len(a)+1)
		list = append(list, append(bytes.Clone(a[:min(cut, 1<<18)]), a[from:min(len(a), from+1<<18)]...))
	}
	s := newStore(t)
	ids, _ := store(t, s, list...)
	want(t, s, ids, list)
	for i, o := range ids[:len(ids)-1] { // its base may have any other id
		if obj, err := objects.Read(t.Context(), s, o); err != nil || len(obj.Data) > objects.MaxSize {
			t.Errorf("object %d has %d bytes, %v", i, len(obj.Data), err)
		}
	}
}

// TestChainsAreBounded: however long a conversation is, a body can be read from a bounded number of others.
func TestChainsAreBounded(t *testing.T) {
	s := newStore(t)
	var list [][]byte
	for i := range 2*maxChain + 10 {
		list = append(list, []byte(strings.Repeat("words ", i)))
	}
	ids, _ := store(t, s, list...)
	whole, longest, length := 0, 0, 0
	for _, id := range ids {
		obj, err := objects.Read(t.Context(), s, id)
		if err != nil {
			t.Fatal(err)
		}
		if length++; len(obj.Parents) == 0 {
			whole, length = whole+1, 1
		}
		longest = max(longest, length)
	}
	if whole != 3 || longest != maxChain {
		t.Errorf("%d whole bodies, a chain of %d", whole, longest)
	}
	want(t, uncached{s}, ids[len(ids)-3:], list[len(ids)-3:])
	for chain, wantChain := range map[uint64]uint64{maxChain - 20: maxChain, maxChain - 19: 20} {
		if b, _ := Encode(bytes.Repeat([]byte("0"), 20<<20), false, &Body{Data: []byte("1"), chain: chain}); b.chain != wantChain {
			t.Errorf("a body of 20 MiB after %d has a chain of %d", chain, b.chain)
		}
	}
}

// TestDamagedBodies: what a store lies about a body is an error that names the object.
func TestDamagedBodies(t *testing.T) {
	first, second := []byte(strings.Repeat("one two ", 100)), []byte(strings.Repeat("one two ", 100)+"three four five")
	s := newStore(t)
	ids, _ := store(t, s, first, second)
	zeros := compression.CompressFast(nil, make([]byte, 32<<20))
	for name, change := range map[string]func(d *record, parents, links *[]objects.ID){
		"larger than its frame":  func(d *record, _, _ *[]objects.ID) { d.size++ },
		"smaller than its frame": func(d *record, _, _ *[]objects.ID) { d.size-- },
		"another hash":           func(d *record, _, _ *[]objects.ID) { d.hash[0]++ },
		"prefix beyond the base": func(d *record, _, _ *[]objects.ID) { d.prefix, d.size = 5000, 5015 },
		"suffix beyond the base": func(d *record, _, _ *[]objects.ID) { d.suffix, d.size = 5000, 6000 },
		"no base":                func(_ *record, parents, _ *[]objects.ID) { *parents = nil },
		"another base":           func(_ *record, parents, _ *[]objects.ID) { *parents = []objects.ID{objects.Hash([]byte("missing"))} },
		"two bases":              func(_ *record, parents, _ *[]objects.ID) { *parents = append(*parents, ids[0]) },
		"a long chain":           func(d *record, _, _ *[]objects.ID) { d.chain = 200 },
		"an endless chain":       func(d *record, _, _ *[]objects.ID) { d.chain = maxChain + 1 },
		"a frame that grows":     func(d *record, _, _ *[]objects.ID) { d.frame = zeros },
		"no frame":               func(d *record, _, _ *[]objects.ID) { d.frame = nil },
		"a damaged frame":        func(d *record, _, _ *[]objects.ID) { d.frame = bytes.Clone(d.frame); d.frame[len(d.frame)-1] ^= 0xff },
		"chunks that are bodies": func(d *record, _, links *[]objects.ID) { d.frame, *links = nil, ids[:1] },
		"a frame and chunks":     func(_ *record, _, links *[]objects.ID) { *links = ids[:1] },
		"too large":              func(d *record, _, _ *[]objects.ID) { d.size = MaxSize + 1 },
	} {
		obj, err := objects.Read(t.Context(), s, ids[1])
		if err != nil {
			t.Fatal(err)
		}
		d, err := parse(obj)
		if err != nil {
			t.Fatal(err)
		}
		parents, links := obj.Parents, obj.Links
		change(d, &parents, &links)
		var r canonical.Record
		d.fields(&r)
		bad := objects.New(objects.KindBody, parents, links, r.Bytes())
		put(t, s, bad)
		_, err = Read(t.Context(), s, bad.ID)
		if damaged := (*objects.CorruptError)(nil); !errors.Is(err, objects.ErrNotFound) && (!errors.As(err, &damaged) || damaged.ID != bad.ID) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBodyWithoutItsBase: after a purge of its base a body is read from its whole copy, and so are those
// that differ from it. Another body in place of the copy is refused.
func TestBodyWithoutItsBase(t *testing.T) {
	s := newStore(t)
	list := [][]byte{[]byte("the number is 4711"), []byte("the number is left out"), []byte("the number is left out, he said")}
	ids, _ := store(t, s, list...)
	if _, err := objects.Purge(t.Context(), s, []objects.Tombstone{{ID: ids[0]}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), s, ids[2]); !errors.Is(err, objects.ErrPurged) {
		t.Errorf("without a copy: %v", err)
	}
	other, made := Encode([]byte("the number is 4712"), false, nil)
	whole, more := Encode(list[1], false, nil)
	put(t, s, append(made, more...)...)
	var old objects.ID
	for _, target := range []objects.ID{other.ID, whole.ID} {
		err := s.Apply(t.Context(), objects.Batch{Refs: []objects.RefUpdate{{Name: CopyRef(ids[1]), Old: old, New: target}}})
		if err != nil {
			t.Fatal(err)
		}
		if old = target; target == other.ID {
			if _, err := Read(t.Context(), s, ids[1]); !errors.Is(err, objects.ErrCorrupt) || !strings.Contains(err.Error(), other.ID.Short()) {
				t.Errorf("another body: %v", err)
			}
		}
	}
	want(t, uncached{s}, ids[1:], list[1:])
	if _, err := Read(t.Context(), s, ids[0]); !errors.Is(err, objects.ErrPurged) {
		t.Errorf("the purged body: %v", err)
	}
}

// FuzzDecode decodes records that anybody may have written.
func FuzzDecode(f *testing.F) {
	base := &Body{Data: []byte(strings.Repeat("one two ", 1000)), chain: 1}
	for _, text := range []string{"", "one two three", strings.Repeat("one two ", 1000) + "three"} {
		_, whole := Encode([]byte(text), false, nil)
		_, diff := Encode([]byte(text), true, base)
		f.Add(whole[len(whole)-1].Data, false)
		f.Add(diff[len(diff)-1].Data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, based bool) {
		var parents []objects.ID
		var on *Body
		if based {
			parents, on = []objects.ID{{1}}, base
		}
		d, err := parse(objects.New(objects.KindBody, parents, nil, data))
		if err != nil {
			return
		}
		if b, err := d.decode(on); err == nil && (len(b.Data) != d.size || objects.Hash(b.Data) != d.hash) {
			t.Errorf("%d bytes of %d", len(b.Data), d.size)
		}
	})
}
