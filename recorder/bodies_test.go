package recorder_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/requestbody"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/recorder"
)

// verified returns the outcomes and the bodies of all requests of a repo, the oldest first.
func verified(t *testing.T, repo *tract.Repo) (outcomes []inspect.Outcome, bodies []string) {
	t.Helper()
	for x, err := range inspect.Verify(t.Context(), repo, nil, inspect.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		outcomes, bodies = append(outcomes, x.Outcome), append(bodies, string(x.Request.Body))
	}
	return outcomes, bodies
}

// TestCapturedBodiesAreKept plays all captured sessions into one store without a spool. Every sent body
// is read back byte for byte, also after gc, from a backup, and from a copy in another store.
func TestCapturedBodiesAreKept(t *testing.T) {
	folder := t.TempDir()
	sessions := captures(t)
	repo, err := tract.Open(t.Context(), filepath.Join(folder, "store"), tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	s := &stage{t: t, repo: repo, committed: map[*capture]objects.ID{}, branch: map[*capture]string{}}
	s.transport = recorder.New(repo, recorder.Options{
		Next: s, OnError: func(err *recorder.Error) { t.Errorf("%v", err) },
		OnResponse: func(_ string, r *tract.Response) { s.committed[s.next] = r.Commits[len(r.Commits)-1] },
	})
	for _, list := range sessions {
		s.play(list)
	}
	want := map[objects.ID][]byte{}
	for c, id := range s.committed {
		want[id] = c.sent
	}
	check := func(name string, repo *tract.Repo) {
		t.Helper()
		for id, sent := range want {
			x, err := inspect.Reproduce(t.Context(), repo, id.String(), nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if x.Outcome != inspect.AsSent || !bytes.Equal(x.Request.Body, sent) {
				t.Errorf("%s: a body of %d bytes is %s %s, %d bytes", name, len(sent), x.Outcome, x.Why, len(x.Request.Body))
			}
		}
	}
	if len(want) < 150 {
		t.Fatalf("%d responses", len(want))
	}
	check("as recorded", repo)
	if _, err := maintain.GC(t.Context(), repo, objects.Sweep{Before: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	check("after gc", repo)
	backup, copied := filepath.Join(folder, "backup"), filepath.Join(folder, "copy")
	if _, err := maintain.Backup(t.Context(), repo, backup, maintain.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maintain.BackupTo(t.Context(), repo, copied, maintain.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{backup, copied} {
		other, err := tract.Open(t.Context(), path, tract.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		check(filepath.Base(path), other)
		other.Close()
	}
}

// TestPurgeOfWordsInBodies has a client that leaves a question out of its later requests. A purge of the
// question removes the bodies with it, and stores the first one without it anew, so that the later ones can be
// read. A second purge reaches the copy.
func TestPurgeOfWordsInBodies(t *testing.T) {
	folder := t.TempDir()
	w := newWire(t, folder, says("A1", "A2", "A3", "A4", "A5"))
	defer w.repo.Close()
	w.client.Transport = session{w.transport}
	const secret = "the number is 4711"
	s := in(t, "s")
	w.ask(s, "Q1", "A0", secret)
	w.ask(s, "Q1", "A0", secret, "A1", "Q2")
	w.ask(s, "Q1", "A0", "[cleared]", "A1", "Q2", "A2", "Q3")
	w.ask(s, "Q1", "A0", "[cleared]", "A1", "Q2", "A2", "Q3", "A3", "Q4")
	w.settle()
	if _, bodies := verified(t, w.repo); len(bodies) != 4 || !strings.Contains(bodies[2], "cleared") {
		t.Fatalf("bodies %q", bodies)
	}
	stored := func(gone []string) (frames [][]byte) {
		t.Helper()
		ids, err := w.repo.Store().Find(t.Context(), objects.KindBody, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			b, err := requestbody.Read(t.Context(), w.repo.Store(), id)
			if errors.Is(err, objects.ErrPurged) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			obj, err := objects.Read(t.Context(), w.repo.Store(), id)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(gone, func(word string) bool { return bytes.Contains(b.Data, []byte(word)) }) {
				frames = append(frames, obj.Data)
			}
		}
		return frames
	}
	purge := func(words ...string) {
		t.Helper()
		frames := stored(words[:1])
		if len(frames) == 0 {
			t.Fatalf("no body has %q", words[0])
		}
		done, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Revs: []string{":/" + words[0]}, Why: "told"})
		if err != nil || done.Bodies < len(frames) {
			t.Fatalf("purged %+v, %v", done, err)
		}
		raw := files(t, folder)
		for _, frame := range append(frames, []byte(words[0])) {
			if bytes.Contains(raw, frame[max(0, len(frame)-40):]) {
				t.Errorf("%q is in a file after the purge", frame)
			}
		}
		if left := stored(words); len(left) > 0 {
			t.Errorf("%d bodies have the words after the purge", len(left))
		}
		if result, err := maintain.Fsck(t.Context(), filepath.Join(folder, "tract.db"), maintain.FsckOptions{}); err != nil || !result.OK() || result.Unreachable > 0 {
			t.Errorf("fsck: %+v, %v", result, err)
		}
	}
	purge(secret)
	outcomes, bodies := verified(t, w.repo)
	if fmt.Sprint(outcomes) != "[purged purged as sent as sent]" || bodies[3] != chatBody("Q1", "A0", "[cleared]", "A1", "Q2", "A2", "Q3", "A3", "Q4") {
		t.Errorf("outcomes %v, bodies %q", outcomes, bodies)
	}
	w.ask(s, "Q1", "A0", "[cleared]", "A1", "Q2", "A2", "Q3", "A3", "Q4", "A4", "Q5")
	w.settle()
	purge("[cleared]", secret)
	if outcomes, _ := verified(t, w.repo); slices.Contains(outcomes, inspect.AsSent) {
		t.Errorf("outcomes after the second purge %v", outcomes)
	}
}

// TestPurgeOfALargeBody: a body whose frame is in chunks is purged with them.
func TestPurgeOfALargeBody(t *testing.T) {
	w := newWire(t, "mem:", says("A1"))
	defer w.repo.Close()
	w.client.Transport = session{w.transport}
	noise := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	w.ask(in(t, "s"), hex.EncodeToString(noise))
	w.settle()
	if outcomes, bodies := verified(t, w.repo); fmt.Sprint(outcomes) != "[as sent]" || bodies[0] != chatBody(hex.EncodeToString(noise)) {
		t.Fatalf("outcomes %v", outcomes)
	}
	if _, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Revs: []string{"proxy/test/s~2"}}); err != nil {
		t.Fatal(err)
	}
	chunks, err := w.repo.Store().Find(t.Context(), objects.KindChunk, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for obj, err := range w.repo.Store().Get(t.Context(), chunks) {
		if !errors.Is(err, objects.ErrPurged) {
			t.Errorf("a chunk of %d bytes is left, %v", len(obj.Data), err)
		}
	}
	if outcomes, _ := verified(t, w.repo); fmt.Sprint(outcomes) != "[purged]" {
		t.Errorf("outcomes %v", outcomes)
	}
}

// TestScanReadsBodies: a secret that is only in a body is found and purged, and the later body, without the secret,
// is kept.
func TestScanReadsBodies(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2"))
	defer w.repo.Close()
	w.transport = recorder.New(w.repo, recorder.Options{Unmasked: true})
	w.client.Transport = session{w.transport}
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, body := range []string{
		strings.Replace(chatBody("Q1"), `"model"`, `"user":"`+token+`","model"`, 1),
		chatBody("Q1", "A1", "Q2"),
	} {
		res, err := w.client.Do(w.request(in(t, "s"), body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		w.settle()
	}
	found := map[string]int{}
	for l, err := range maintain.Scan(t.Context(), w.repo, maintain.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[l.Where]++
	}
	if found["body"] != 1 {
		t.Errorf("found %v", found)
	}
	if _, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Secrets: true, Mask: true}); err != nil {
		t.Fatal(err)
	}
	outcomes, bodies := verified(t, w.repo)
	if fmt.Sprint(outcomes) != "[purged as sent]" || bodies[1] != chatBody("Q1", "A1", "Q2") {
		t.Errorf("outcomes %v, bodies %q", outcomes, bodies)
	}
	for l, err := range maintain.Scan(t.Context(), w.repo, maintain.ScanOptions{}) {
		if err != nil || l.Where == "body" {
			t.Errorf("after the purge: %+v, %v", l, err)
		}
	}
}

// purging is a store that is purged just before it applies a batch.
type purging struct {
	objects.Store
	purge func() // nil: never
}

func (s *purging) Unwrap() objects.Store { return s.Store }

func (s *purging) Apply(ctx context.Context, b objects.Batch) error {
	if purge := s.purge; purge != nil {
		s.purge = nil
		purge()
	}
	return s.Store.Apply(ctx, b)
}

// TestBodyThatIsStoredDuringAPurge has a purge of a question end just before the next request, which repeats
// the question, is committed.
func TestBodyThatIsStoredDuringAPurge(t *testing.T) {
	store := &purging{Store: objects.Memory()}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1", "A2"))
	defer w.repo.Close()
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = session{w.transport}
	s := in(t, "s")
	w.ask(s, "the number is 4711")
	w.settle()
	store.purge = func() {
		o := maintain.PurgeOptions{Revs: []string{"proxy/test/s~2"}, Spools: []string{folder}}
		if done, err := maintain.Purge(t.Context(), w.repo, o); err != nil || done.Bodies != 1 {
			t.Errorf("purged %+v, %v", done, err)
		}
	}
	w.ask(s, "the number is 4711", "A1", "Q2")
	w.want(map[string]string{"proxy/test/s": " | A1 | Q2 | A2"})
	ids, err := store.Find(t.Context(), objects.KindBody, "", 0)
	if err != nil || len(ids) != 2 {
		t.Errorf("bodies %v, %v", ids, err)
	}
	for _, id := range ids {
		if _, err := objects.Read(t.Context(), store, id); !errors.Is(err, objects.ErrPurged) {
			t.Errorf("body %s: %v", id.Short(), err)
		}
	}
}
