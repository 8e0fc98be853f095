package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// packSource returns a source of a store that nobody writes to.
func packSource(t *testing.T, s objects.Store) *source {
	t.Helper()
	idle(t, s)
	src, err := inner(t, s).newSource(t.Context(), "clean", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.close)
	return src
}

// TestMarksKeepOneBitOfAnObject counts the memory of gc that grows with the objects of a store:
// one bit for each, and no id.
func TestMarksKeepOneBitOfAnObject(t *testing.T) {
	s, _ := manyPacks(t, 10)
	m, err := findKept(packSource(t, s), nil, now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if bits := 64 * (len(m.kept) + len(m.unfollowed)); m.rows != 10*60 || bits > m.rows+2*64 || len(m.records) > 0 || len(m.roots) > 11 {
		t.Errorf("%d bits, %d records and %d roots for %d objects", bits, len(m.records), len(m.roots), m.rows)
	}
}

// TestMarkFollowsEdgesAndAges marks a history with objects beside it, old and young.
func TestMarkFollowsEdgesAndAges(t *testing.T) {
	s, _ := manyPacks(t, 3)
	old, young := object("old"), object("young")
	for _, o := range []objects.Object{old, young} {
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	src := packSource(t, s)
	for _, want := range []struct {
		keep                 []objects.ID
		old                  uint32
		all                  bool
		kept, young, removed int
	}{
		{nil, 0, true, 180, 0, 2},
		{nil, 4, false, 180, 1, 1},
		{nil, 0, false, 180, 2, 0},
		{[]objects.ID{old.ID}, 0, true, 181, 0, 1},
	} {
		before := time.Now().Add(-time.Hour)
		if want.all {
			before = now()
		}
		m, err := findKept(src, want.keep, before, want.old)
		if err != nil {
			t.Fatal(err)
		}
		var got objects.Swept
		if err := m.countSwept(&got); err != nil || got.Kept != want.kept || got.Young != want.young || got.Removed != want.removed {
			t.Errorf("%+v: %+v, %v", want, got, err)
		}
	}
}

// editBodies passes the bodies of the packs of a store that nobody has open, without their
// checksums, to a function, and stores those that it changes: with the right checksum if setSum
// is set.
func editBodies(t *testing.T, path string, setSum bool, edit func(i int, body []byte) []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			b, i := tx.Bucket([]byte(buckets[bodiesBucket])), 0
			return b.ForEach(func(key, value []byte) error {
				body := edit(i, bytes.Clone(value[checksum.Size:]))
				if i++; bytes.Equal(body, value[checksum.Size:]) {
					return nil
				}
				sum := value[:checksum.Size]
				if setSum {
					sum = binary.BigEndian.AppendUint64(nil, checksum.Sum(key, body))
				}
				return b.Put(key, slices.Concat(sum, body))
			})
		})
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// recompress compresses a body anew, as gc does not, after a change of its data.
func recompress(t *testing.T, body []byte, change func(data []byte)) []byte {
	t.Helper()
	data, _, err := decodeBodyData(nil, 1, append(make([]byte, checksum.Size), body...))
	if err != nil {
		t.Fatal(err)
	}
	change(data)
	if codec(body[0]) == codecRaw {
		return append([]byte{byte(codecRaw)}, data...)
	}
	return compression.CompressFast([]byte{byte(codecZstd)}, data)
}

// denseStore returns a store after gc, with an object that no ref leads to in its last pack.
func denseStore(t *testing.T) (s objects.Store, path string) {
	t.Helper()
	s, path = manyPacks(t, 24)
	stray := object("stray")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{stray}}); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, objects.Sweep{Before: now(), Keep: []objects.ID{stray.ID}})
	idle(t, s)
	return s, path
}

// TestDensePacksAreCopiedAsTheyAre copies whole packs, but not one of which something is removed.
func TestDensePacksAreCopiedAsTheyAre(t *testing.T) {
	s, path := denseStore(t)
	var before, after []string
	editBodies(t, path, true, func(_ int, body []byte) []byte {
		body = recompress(t, body, func([]byte) {})
		before = append(before, string(body))
		return body
	})
	if got := sweep(t, s, objects.Sweep{Before: now()}); got.Removed != 1 {
		t.Errorf("%+v", got)
	}
	idle(t, s)
	editBodies(t, path, true, func(_ int, body []byte) []byte {
		after = append(after, string(body))
		return body
	})
	if last := len(before) - 1; last < 3 || len(after) != len(before) || !slices.Equal(after[:last], before[:last]) || after[last] == before[last] {
		t.Errorf("of %d packs %d became, or others than the last one were changed", len(before), len(after))
	}
}

// TestObjectsAreHashedBeforeTheyAreWritten changes a pack that gc copies as it is, and one that it
// packs anew, and gives them checksums that are right: those would stand for what is wrong.
func TestObjectsAreHashedBeforeTheyAreWritten(t *testing.T) {
	for _, dense := range []bool{true, false} {
		s, path := manyPacks(t, 2)
		if dense {
			s, path = denseStore(t)
		}
		editBodies(t, path, true, func(i int, body []byte) []byte {
			if i > 0 {
				return body
			}
			return recompress(t, body, func(data []byte) { data[0] ^= 1 })
		})
		c := &gc{}
		t.Cleanup(c.close)
		if err := c.begin(t.Context(), inner(t, s)); err != nil {
			t.Fatal(err)
		}
		m, err := c.mark(t.Context(), inner(t, s), objects.Sweep{Before: now()})
		if err != nil {
			t.Fatal(err)
		}
		c.copier = &copier{src: c.src, out: &c.out, marks: m}
		if err := c.copier.copyRounds(); !errors.Is(err, objects.ErrCorrupt) || c.out.lastPack > 0 {
			t.Errorf("dense %t: %v, and %d packs were written", dense, err, c.out.lastPack)
		}
	}
}
