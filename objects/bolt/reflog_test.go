package bolt

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// twoChains is a store whose log has, alone in the file, 4 moves of main, 3 of side, and
// of gone a creation and a deletion.
func twoChains(t *testing.T) (path string) {
	t.Helper()
	s, path := fresh(t)
	for i := range 4 {
		if err := appendOne(t, s, "main", i); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s) // alone
		if i == 0 {
			continue
		}
		if err := appendOne(t, s, "side", 10+i); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	o := object("gone")
	for _, u := range []objects.RefUpdate{{Name: "refs/heads/gone", New: o.ID}, {Name: "refs/heads/gone", Old: o.ID}} {
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{u}}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantClean(t, path)
	return path
}

// removeEntries takes the entries that move a ref and that drop chooses out of the file,
// as somebody does who knows how it is made: out of the log and of the index by name.
func removeEntries(t *testing.T, path, ref string, drop func(nth int) bool) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		var keys [][]byte
		err := tx.Bucket([]byte(buckets[logBucket])).ForEach(func(key, value []byte) error {
			list, err := decodeEntries(key, value)
			if err == nil && (len(list) != 1 || len(list[0].Refs) != 1) {
				err = errors.New("the entries are not alone")
			}
			if err == nil && list[0].Refs[0].Name == ref {
				keys = append(keys, bytes.Clone(key))
			}
			return err
		})
		for n, key := range keys {
			if err == nil && drop(n) {
				err = errors.Join(tx.Bucket([]byte(buckets[logBucket])).Delete(key), tx.Bucket([]byte(buckets[movesBucket])).Delete(append([]byte(ref+"\x00"), key...)))
			}
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// wantNamed checks that an audit finds one damage of the log, which names a ref.
func wantNamed(t *testing.T, path, ref string) {
	t.Helper()
	got, err := audit(t, path, false)
	if err != nil {
		t.Fatal(err)
	}
	if harm := got.harm(); len(harm) != 1 || !strings.Contains(harm[0].Where+harm[0].What, `"`+ref+`"`) {
		t.Errorf("%d damages, want one of %s: %+v", len(harm), ref, harm)
	}
}

// TestRemovedChainOfLogEntriesIsFound removes all log entries of a ref, to which the ref still
// refers.
func TestRemovedChainOfLogEntriesIsFound(t *testing.T) {
	path := twoChains(t)
	removeEntries(t, path, "refs/heads/side", func(int) bool { return true })
	wantNamed(t, path, "refs/heads/side")
}

// TestRemovedLogEntryIsFound wherever it was in the chain of its ref.
func TestRemovedLogEntryIsFound(t *testing.T) {
	for nth := range 4 {
		path := twoChains(t)
		removeEntries(t, path, "refs/heads/main", func(n int) bool { return n == nth })
		wantNamed(t, path, "refs/heads/main")
	}
}

// TestRemovedEntryOfADeletedRefIsFound removes the first log entry of a deleted ref. No ref refers
// to the chain, but its later entries do.
func TestRemovedEntryOfADeletedRefIsFound(t *testing.T) {
	path := twoChains(t)
	removeEntries(t, path, "refs/heads/gone", func(n int) bool { return n == 0 })
	wantNamed(t, path, "refs/heads/gone")
}

// TestRefToAnOlderLogEntryIsFound makes a ref refer to an older log entry, with the target that the
// log has.
func TestRefToAnOlderLogEntryIsFound(t *testing.T) {
	path := twoChains(t)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		const name = "refs/heads/side"
		r, err := decodeRef(name, tx.Bucket([]byte(buckets[refsBucket])).Get([]byte(name)))
		if err != nil {
			return err
		}
		r.entry[0] ^= 1
		return tx.Bucket([]byte(buckets[refsBucket])).Put([]byte(name), encodeRef(r))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	wantNamed(t, path, "refs/heads/side")
}

// TestSalvageOfLogOnUnreachablePages removes the pages that refer to packs and log.
func TestSalvageOfLogOnUnreachablePages(t *testing.T) {
	path, m := large(t, 600)
	s := mustOpen(t, path, objects.Options{})
	sweep(t, s, objects.Sweep{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := wantClean(t, path).entries
	b := mustRead(t, path)
	clear(b[:2*4096])
	for at := 2 * 4096; at < len(b); at += 4096 {
		if page.Order.Uint64(b[at:]) == uint64(at/4096) && page.Order.Uint16(b[at+8:]) == page.BranchFlag {
			clear(b[at : at+4096])
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := audit(t, path, true)
	if err != nil || got.entries != want || m.lostIn(got) != 0 {
		t.Errorf("%d of %d entries are saved, and %d objects are not, %v", got.entries, want, m.lostIn(got), err)
	}
}
