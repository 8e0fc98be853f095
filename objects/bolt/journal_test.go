package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// journaled is a store whose commits are all in its journal: the bytes of its
// files, and where its frames end.
type journaled struct {
	file, journal, anchor []byte
	ends                  []int64
}

func newJournaled(t testing.TB, commits int) (m journaled) {
	t.Helper()
	s, path := fresh(t)
	for i := range commits {
		apply(t, s, fmt.Sprint("refs/heads/", i), fmt.Sprint("content ", i))
		m.ends = append(m.ends, int64(anchorNumber(t, path, 1)))
	}
	idle(t, s)
	m.file, m.journal, m.anchor = mustRead(t, path), mustRead(t, journalPath(path)), mustRead(t, gatePath(path))
	return m
}

// write makes the files anew; an anchor of nil is none.
func (m journaled) write(t testing.TB, path string, file, journal, anchor []byte) {
	t.Helper()
	_ = os.Remove(gatePath(path))
	err := errors.Join(os.WriteFile(path, file, 0o600), os.WriteFile(journalPath(path), journal, 0o600))
	if anchor != nil {
		err = errors.Join(err, os.WriteFile(gatePath(path), anchor, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// count opens the store and counts its commits, all of which must be whole.
func (m journaled) count(t testing.TB, path string) (int, error) {
	t.Helper()
	s, err := objects.Open(t.Context(), path, objects.Options{Wait: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	refs, err := s.Refs(t.Context(), objects.RefQuery{})
	if err != nil {
		return 0, err
	}
	for _, r := range refs {
		if _, err := objects.Read(t.Context(), s, r.Target); err != nil {
			t.Errorf("%s is there, and its object: %v", r.Name, err)
		}
	}
	return len(refs), nil
}

// whole is how many frames lie before an offset.
func (m journaled) whole(at int64) (n int) {
	for n < len(m.ends) && m.ends[n] <= at {
		n++
	}
	return n
}

// TestJournalCutAtEveryOffset leaves what a crash leaves: the beginning of the
// journal, and zeros or nothing behind. What is whole is there, and writing goes
// on. With an anchor that says more, it was no crash.
func TestJournalCutAtEveryOffset(t *testing.T) {
	m := newJournaled(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	end := m.ends[len(m.ends)-1]
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for at := int64(journal.Start); at <= end; at += step {
		zeros := bytes.Clone(m.journal)
		clear(zeros[at:])
		for what, journal := range map[string][]byte{"cut": m.journal[:at], "zeros": zeros} {
			m.write(t, path, m.file, journal, nil)
			n, err := m.count(t, path)
			if want := m.whole(at); err != nil || n < want || n > want+1 { // the last bytes of a frame are zeros anyway
				t.Fatalf("%s at %d: %d commits, %v; want %d", what, at, n, err, want)
			}
			if at%13 == 0 {
				s := mustOpen(t, path, objects.Options{})
				apply(t, s, "refs/heads/next", "next")
				_ = s.Close()
				if again, err := m.count(t, path); err != nil || again != n+1 {
					t.Fatalf("%s at %d: %d commits after another one, %v; want %d", what, at, again, err, n+1)
				}
			}
			if at%5 > 0 {
				continue
			}
			m.write(t, path, m.file, journal, m.anchor)
			if n, err := m.count(t, path); err == nil && n != len(m.ends) || err != nil && !errors.Is(err, objects.ErrCorrupt) {
				t.Fatalf("%s at %d, where more was acknowledged: %d commits, %v", what, at, n, err)
			}
		}
	}
}

// TestJournalWithAFlippedBit is never taken for one that a crash has torn, if what
// was acknowledged is known, or if anything follows.
func TestJournalWithAFlippedBit(t *testing.T) {
	m := newJournaled(t, 4)
	path := filepath.Join(t.TempDir(), "x.db")
	end := m.ends[len(m.ends)-1]
	last := m.ends[len(m.ends)-2]
	r := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	for range 400 {
		bit := (journal.Start + r.Int64N(end-journal.Start)) * 8
		if r.IntN(10) == 0 {
			bit = r.Int64N(int64(journal.HeaderSize) * 8)
		}
		bad := bytes.Clone(m.journal)
		bad[bit/8] ^= 1 << r.IntN(8)
		for _, anchor := range [][]byte{nil, m.anchor} {
			m.write(t, path, m.file, bad, anchor)
			n, err := m.count(t, path)
			switch {
			case errors.Is(err, objects.ErrCorrupt), errors.Is(err, objects.ErrFormat):
			case err != nil:
				t.Fatalf("byte %d: %v", bit/8, err)
			case n != len(m.ends) && (anchor != nil || bit/8 < last):
				t.Fatalf("byte %d, anchor %t: %d commits of %d are there, and nothing is said", bit/8, anchor != nil, n, len(m.ends))
			}
		}
	}
}

// TestDamagedLockFileIsHarmless flips every bit of the anchor and cuts it at every
// length: the store opens, reads, passes fsck and takes the next commit, which writes
// a good anchor again.
func TestDamagedLockFileIsHarmless(t *testing.T) {
	m := newJournaled(t, 2)
	path := filepath.Join(t.TempDir(), "x.db")
	var anchors [][]byte
	for size := range len(m.anchor) {
		anchors = append(anchors, m.anchor[:size])
	}
	for bit := range len(m.anchor) * 8 {
		bad := bytes.Clone(m.anchor)
		bad[bit/8] ^= 1 << (bit % 8)
		anchors = append(anchors, bad)
	}
	anchors = append(anchors, bytes.Repeat([]byte{0xff}, 4096))
	for i, anchor := range anchors {
		m.write(t, path, m.file, m.journal, anchor)
		if n, err := m.count(t, path); err != nil || n != len(m.ends) {
			t.Fatalf("anchor %x: %d commits, %v", anchor, n, err)
		}
		if i%16 > 0 {
			continue
		}
		s := mustOpen(t, path, objects.Options{})
		err := inner(t, s).Audit(t.Context(), objects.Audit{Damage: func(d objects.Damage) error {
			if !d.Harmless {
				t.Errorf("anchor %x: fsck: %s: %s", anchor, d.Where, d.What)
			}
			return nil
		}})
		if err != nil {
			t.Fatalf("anchor %x: fsck: %v", anchor, err)
		}
		apply(t, s, "refs/heads/next", "next")
		_ = s.Close()
		if n, err := m.count(t, path); err != nil || n != len(m.ends)+1 {
			t.Fatalf("anchor %x: %d commits after another one, %v", anchor, n, err)
		}
		if transactions(t, path) == 0 {
			t.Fatalf("anchor %x: the next commit wrote no anchor", anchor)
		}
	}
}

func TestMissingJournal(t *testing.T) {
	m, other := newJournaled(t, 2), newJournaled(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	for name, journal := range map[string][]byte{"none": nil, "empty": {}, "noise": []byte("noise"), "of another store": other.journal} {
		m.write(t, path, m.file, journal, m.anchor)
		if journal == nil {
			if err := os.Remove(journalPath(path)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := m.count(t, path); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%s: %d commits, %v", name, n, err)
		}
	}
	m.write(t, path, m.file, m.journal, other.anchor) // the lock file of a store that was here before
	if n, err := m.count(t, path); err != nil || n != 2 {
		t.Errorf("beside the anchor of another store: %d commits, %v", n, err)
	}
}

// TestJournalWithoutItsStore is not thrown away for a new store; an empty one is.
func TestJournalWithoutItsStore(t *testing.T) {
	for _, commits := range []int{0, 1} {
		s, path := fresh(t)
		for i := range commits {
			apply(t, s, fmt.Sprint("refs/heads/", i), "content")
		}
		idle(t, s)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, err := objects.Open(t.Context(), path, objects.Options{Create: true})
		if (err == nil) != (commits == 0) || err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("a journal of %d commits: %v", commits, err)
		}
	}
}

// TestFileFromBeforeTheLastCheckpoint puts an old file back. After the checkpoint no frame was written:
// only the anchor that the checkpoint itself has written says that the journal has a newer generation.
func TestFileFromBeforeTheLastCheckpoint(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/a", "a")
	mustCheckpoint(t, s)
	apply(t, s, "refs/heads/a2", "a2")
	idle(t, s)
	before := mustRead(t, path)
	apply(t, s, "refs/heads/large", strings.Repeat("x", 2*maxFrameSize))
	idle(t, s)
	if bytes.Equal(before, mustRead(t, path)) {
		t.Fatal("the large batch was not written by a checkpoint")
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetRefs(t.Context(), "refs/heads/a2"); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("an older file: %v", err)
	}
}

// TestFileFromBeforeACheckpoint puts an old file back, whose journal has a newer generation.
func TestFileFromBeforeACheckpoint(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/a", "a")
	idle(t, s)
	before := mustRead(t, path)
	mustCheckpoint(t, s)
	apply(t, s, "refs/heads/b", "b")
	idle(t, s)
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetRefs(t.Context(), "refs/heads/b"); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("an older file: %v", err)
	}
}

// TestWriterKilledAfterACheckpoint restores the anchor from before the checkpoint, as a writer leaves it
// that is killed before it writes the next one. That anchor names frames that do not count any more:
// neither a reader nor a writer takes them for lost or the file for damaged, and the next frame renews it.
func TestWriterKilledAfterACheckpoint(t *testing.T) {
	m := newJournaled(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	m.write(t, path, m.file, m.journal, m.anchor)
	s := mustOpen(t, path, objects.Options{})
	mustCheckpoint(t, s)
	if err := os.WriteFile(gatePath(path), m.anchor, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := m.count(t, path); err != nil || n != 3 {
		t.Errorf("%d commits, %v", n, err)
	}
	apply(t, s, "refs/heads/next", "next")
	if n, err := m.count(t, path); err != nil || n != 4 {
		t.Errorf("%d commits after another one, %v", n, err)
	}
	if n := transactions(t, path); n != 4 {
		t.Errorf("the anchor says that %d groups were acknowledged", n)
	}
}

// TestReadersDuringCheckpoints reads everything back during many checkpoints, in this process and in
// another one that has read the journal before.
func TestReadersDuringCheckpoints(t *testing.T) {
	s, path := fresh(t)
	other := mustOpen(t, path, objects.Options{})
	inner(t, s).checkpointLength = 2 << 10
	var want []objects.ID
	for i := range 120 {
		o := object(fmt.Sprint("object ", i))
		if i%9 == 0 {
			o = object(fmt.Sprintf("large %0*d", largeSize, i))
		}
		ref := objects.RefUpdate{Name: "refs/heads/main", New: o.ID}
		if i > 0 {
			ref.Old = want[i-1]
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o, object("again")}, Refs: []objects.RefUpdate{ref}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, o.ID)
		if i%10 != 9 {
			continue
		}
		for _, r := range []objects.Store{s, other} {
			n := 0
			for _, err := range r.Get(t.Context(), want) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			found, err := r.Find(t.Context(), 0, "", 0)
			log, logErr := r.Log(t.Context(), "refs/heads/main", 0, 0)
			missing, missErr := r.Missing(t.Context(), append(want, objects.ID{1}))
			if err := errors.Join(err, logErr, missErr); err != nil || n != i+1 || len(found) != i+2 || len(log) != i+1 || len(missing) != 1 {
				t.Fatalf("after %d commits: %d read, %d found, %d moves, %d missing, %v", i+1, n, len(found), len(log), len(missing), err)
			}
			for digits := range 6 {
				prefix := want[i].String()[:digits+1]
				if ids, err := r.Find(t.Context(), objects.KindContent, prefix, 5); err != nil || len(ids) < 5 && !slices.Contains(ids, want[i]) {
					t.Fatalf("found %v by %s, %v", ids, prefix, err)
				}
			}
		}
	}
	h, err := inner(t, s).lockAndOpen(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.snapshot().runs()
	if h.closeFiles(); err != nil || len(all.List) == 0 || len(all.List) > 3*index.Fan {
		t.Errorf("%d runs, %v", len(all.List), err)
	}
	h.lock.release()
	wantSound(t, path)
}

// TestOpeningMakesNoCheckpoint writes to a store whose journal has frames: the file stays as it is, and
// the new frame is written behind them.
func TestOpeningMakesNoCheckpoint(t *testing.T) {
	m := newJournaled(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	m.write(t, path, m.file, m.journal, m.anchor)
	s := mustOpen(t, path, objects.Options{})
	apply(t, s, "refs/heads/next", "next")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(file, m.file) {
		t.Errorf("the file was written: %v", err)
	}
	log, err := os.ReadFile(journalPath(path))
	if end := m.ends[len(m.ends)-1]; err != nil || !bytes.Equal(log[:end], m.journal[:end]) || len(bytes.Trim(log[end:], "\x00")) == 0 {
		t.Errorf("the frames are not where they were, or no frame is behind them: %v", err)
	}
}

// TestCloseCheckpointsALargeJournal checks that Close leaves little in the journal, and everything
// in the store.
func TestCloseCheckpointsALargeJournal(t *testing.T) {
	s, path := fresh(t)
	tip := line(t, s, "main", 900)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(journalPath(path))
	if err != nil || info.Size() != int64(journal.HeaderSize) {
		t.Errorf("the journal has %d bytes, %v", info.Size(), err)
	}
	again := mustOpen(t, path, objects.Options{})
	n := 0
	for _, err := range objectstest.ChainWithContent(t.Context(), again, tip) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 1800 {
		t.Errorf("a chain of %d objects", n)
	}
	apply(t, again, "refs/heads/next", "next")
}

func FuzzRuns(f *testing.F) {
	f.Add(encodeRuns(index.Runs{List: []index.Run{{Level: 0, Number: 1, Entries: 5}, {Level: 1, Number: 2, Entries: 900}}, Last: 7})[checksumSize:])
	f.Fuzz(func(t *testing.T, record []byte) {
		value := withChecksum(runsKey, record)
		if r, err := decodeRuns(value); err == nil && !bytes.Equal(encodeRuns(r), value) {
			t.Errorf("%x was accepted and is written %x", value, encodeRuns(r))
		}
	})
}

func FuzzBinding(f *testing.F) {
	f.Add(journal.Binding{Salt: [journal.SaltSize]byte{1}, Generation: 3, Sequence: 9, File: 2}.Encode())
	f.Fuzz(func(t *testing.T, record []byte) {
		value := withChecksum(journalKey, record)
		if b, err := decodeBinding(value); err == nil && !bytes.Equal(encodeBinding(b), value) {
			t.Errorf("%x was accepted and is written %x", value, encodeBinding(b))
		}
	})
}
