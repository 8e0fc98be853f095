package recorder_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
	"github.com/tract-vcs/tract/recorder"
)

// failing is a store whose writes fail while it is told so.
type failing struct {
	objects.Store
	fails atomic.Bool
}

func (s *failing) Apply(ctx context.Context, b objects.Batch) error {
	if s.fails.Load() {
		return objectstest.ErrFault
	}
	return s.Store.Apply(ctx, b)
}

// files returns what all files of a folder have.
func files(t *testing.T, folder string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		text, err := os.ReadFile(path)
		all = append(all, text...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSpooledExchangesAreCommittedLater has a store that fails while a conversation continues and
// while the process ends, in the middle of a response. The next process commits all of it.
func TestSpooledExchangesAreCommittedLater(t *testing.T) {
	store := &failing{Store: objects.Memory()}
	url := engine(func() objects.Store { return store })
	const half = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half of\"}}]}\n\n"
	left := make(chan bool)
	n := 0
	w := newWire(t, url, func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if n++; n < 3 {
			io.WriteString(out, chatAnswer([]string{"A1", "A2"}[n-1]))
			return
		}
		io.WriteString(out, half)
		out.(http.Flusher).Flush()
		<-left
	})
	folder := t.TempDir()
	options := recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }}
	w.transport = recorder.New(w.repo, options)
	w.client.Transport = w.transport
	store.fails.Store(true)
	main := recorder.On(t.Context(), "main")
	ask := func(lines ...string) *http.Request {
		req := w.request(main, chatBody(lines...))
		req.Header.Set("Authorization", "Bearer sk-very-secret-key")
		return req
	}
	for _, lines := range [][]string{{"Q1"}, {"Q1", "A1", "Q2"}} {
		res, err := w.client.Do(ask(lines...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	res, err := w.client.Do(ask("Q1", "A1", "Q2", "A2", "Q3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, len(half))); err != nil {
		t.Fatal(err)
	}
	if err := <-w.errs; err.Err == nil {
		t.Error("the failure was not reported")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.transport.Close(stopped); err == nil { // as if the process ended
		t.Error("everything was committed")
	}
	close(left)
	res.Body.Close()
	store.fails.Store(false)
	if bytes.Contains(files(t, folder), []byte("very-secret")) {
		t.Error("a key is in the spool")
	}

	w.transport = recorder.New(w.repo, options)
	w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2 | Q3"})
	list, err := w.repo.Rescues(t.Context())
	if err != nil || len(list) != 1 || list[0].Commits[0].Block.String() != "Half of" {
		t.Errorf("rescued: %v, %v", list, err)
	}
	if err := w.transport.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRepoIsOpenedLater records while there is no repo: the client sees
// nothing of it, and what passed is committed when the repo can be opened.
func TestRepoIsOpenedLater(t *testing.T) {
	w := newWire(t, "mem://", says("A1", "A2"))
	var open atomic.Bool
	w.transport = recorder.New(nil, recorder.Options{
		Spool: t.TempDir(), OnError: func(err *recorder.Error) { w.errs <- err },
		Open: func(context.Context) (*tract.Repo, error) {
			if !open.Load() {
				return nil, objects.ErrBusy
			}
			return w.repo, nil
		},
	})
	w.client.Transport = w.transport
	main := recorder.On(t.Context(), "main")
	w.ask(main, "Q1")
	if err := <-w.errs; !errors.Is(err, objects.ErrBusy) {
		t.Error(err)
	}
	if stats := w.transport.Stats(); stats.Pending != 1 || stats.Failed != 0 {
		t.Errorf("while the repo is busy: %+v", stats)
	}
	open.Store(true)
	w.ask(main, "Q1", "A1", "Q2")
	w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2"})
}

// TestSpoolKeepsNoSecret records a response with a secret in it: what stays in the spool after
// the commit has neither the key of the request nor the secret.
func TestSpoolKeepsNoSecret(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	w := newWire(t, "mem:", says("The token is "+token, "A2"))
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = w.transport
	main := recorder.On(t.Context(), "main")
	w.ask(main, "My token is "+token)
	w.ask(main, "My token is "+token, "The token is "+token, "Q2")
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	proved := []inspect.Outcome{}
	for x, err := range inspect.Verify(t.Context(), w.repo, nil, inspect.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !x.Masked || x.Outcome != inspect.NotReproducible || len(x.Request.Body) == 0 || bytes.Contains(x.Request.Body, []byte(token)) {
			t.Errorf("a masked body is %v, %q", x.Outcome, x.Request.Body)
		}
		proved = append(proved, x.Outcome)
	}
	if len(proved) != 2 {
		t.Errorf("outcomes %v", proved)
	}
	kept := files(t, folder)
	if !bytes.Contains(kept, []byte("My token is")) || bytes.Contains(kept, []byte(token)) {
		t.Errorf("the spool has %q", kept)
	}
	if s := w.transport.Stats(); s != (recorder.Stats{Recorded: 2}) {
		t.Errorf("stats %+v", s)
	}
}

// TestSentBodiesAreProved: the store keeps the body of a request as it was sent, and the
// manifest of the response proves it, without the spool; a purge removes it.
func TestSentBodiesAreProved(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2"))
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = w.transport
	main := recorder.On(t.Context(), "main")
	w.ask(main, "Q1")
	w.ask(main, "Q1", "A1", "Q2")
	if err := errors.Join(w.transport.Close(t.Context()), os.RemoveAll(folder)); err != nil {
		t.Fatal(err)
	}
	for _, purged := range []bool{false, true} {
		var bodies []string
		for x, err := range inspect.Verify(t.Context(), w.repo, nil, inspect.VerifyOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]inspect.Outcome{false: inspect.AsSent, true: inspect.Purged}; x.Outcome != want[purged && len(bodies) == 1] {
				t.Errorf("purged %t, body %d: %v %s", purged, len(bodies), x.Outcome, x.Why)
			}
			bodies = append(bodies, string(x.Request.Body))
		}
		if want := []string{chatBody("Q1"), chatBody("Q1", "A1", "Q2")}; !purged && !slices.Equal(bodies, want) {
			t.Errorf("bodies %q, want %q", bodies, want)
		}
		if _, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Revs: []string{"main~2"}, DryRun: purged}); err != nil {
			t.Fatal(err)
		}
	}
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

// TestCompressedBodiesAreProved: a request and a response that pass compressed are kept as they
// are without compression.
func TestCompressedBodiesAreProved(t *testing.T) {
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Encoding", "gzip")
		out.Write(gzipped(chatAnswer("A1")))
	})
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = w.transport
	req := w.request(recorder.On(t.Context(), "main"), string(gzipped(chatBody("Q1"))))
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"main": "Q1 | A1"})
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for x, err := range inspect.Verify(t.Context(), w.repo, nil, inspect.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Outcome != inspect.AsSent || string(x.Request.Body) != chatBody("Q1") {
			t.Errorf("the body is %v, %q", x.Outcome, x.Request.Body)
		}
	}
	if !bytes.Contains(files(t, folder), []byte("thought of A1")) {
		t.Error("the response is not kept")
	}
}

// TestCompressedRequestWaitsMasked has a store that fails while a compressed request with a secret waits in
// the spool: the spool has the request without compression, and without the secret.
func TestCompressedRequestWaitsMasked(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	store := &failing{Store: objects.Memory()}
	store.fails.Store(true)
	w := newWire(t, engine(func() objects.Store { return store }), says("A1"))
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(*recorder.Error) {}})
	w.client.Transport = w.transport
	req := w.request(recorder.On(t.Context(), "main"), string(gzipped(chatBody("My token is "+token))))
	req.Header.Set("Content-Encoding", "gzip")
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.transport.Close(stopped); err == nil {
		t.Error("everything was committed")
	}
	if kept := files(t, folder); !bytes.Contains(kept, []byte("My token is")) || bytes.Contains(kept, []byte(token)) {
		t.Errorf("the spool has %q", kept)
	}
	store.fails.Store(false)
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.want(map[string]string{"main": "My token is [masked:github:cabf] | A1"})
}

// TestAPurgeReachesTheSpool purges a question while a client goes on with its conversation, and
// repeats the question in every request: it is in no file any more, and comes back to none.
func TestAPurgeReachesTheSpool(t *testing.T) {
	folder := t.TempDir()
	w := newWire(t, folder, says("A1", "A2", "A3", "A4"))
	defer w.repo.Close()
	options := recorder.Options{Spool: filepath.Join(folder, "spool"), OnError: func(err *recorder.Error) { w.errs <- err }}
	w.transport = recorder.New(w.repo, options)
	w.client.Transport = w.transport
	main := recorder.On(t.Context(), "main")
	const secret = "the number is 4711"
	w.ask(main, secret)
	w.settle()
	if _, err := maintain.Purge(t.Context(), w.repo, maintain.PurgeOptions{Revs: []string{":/4711"}, Why: "told"}); err != nil {
		t.Fatal(err)
	}
	w.ask(main, secret, "A1", "Q2")
	w.settle()
	for live := []string{""}; len(live) > 0; { // until the spool has finished with it
		live, _ = filepath.Glob(filepath.Join(folder, "spool", "live-*", "*-*"))
	}
	w.ask(main, secret, "A1", "Q2", "A2", "Q3")
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.transport = recorder.New(w.repo, options) // another process
	w.client.Transport = w.transport
	w.ask(main, secret, "A1", "Q2", "A2", "Q3", "A3", "Q4")
	w.want(map[string]string{"main": " | A1 | Q2 | A2 | Q3 | A3 | Q4 | A4"})
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(files(t, folder), []byte(secret)) {
		t.Error("the purged question is in a file")
	}
}

// TestExchangesOfAFullSpoolAreCounted has the store fail and the spool full: an exchange that is
// lost when the transport is closed is not counted as pending.
func TestExchangesOfAFullSpoolAreCounted(t *testing.T) {
	store := &failing{Store: objects.Memory()}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1"))
	w.transport = recorder.New(w.repo, recorder.Options{Spool: t.TempDir(), Disk: 10, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = w.transport
	store.fails.Store(true)
	w.ask(recorder.On(t.Context(), "main"), "Q1")
	if err := <-w.errs; err.Err == nil { // of the first try
		t.Error("the failure was not reported")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.transport.Close(stopped); err == nil {
		t.Error("everything was committed")
	}
	if s := w.transport.Stats(); s != (recorder.Stats{Dropped: 1}) {
		t.Errorf("stats %+v", s)
	}
	if err := <-w.errs; !bytes.Contains(err.Sent, []byte("Q1")) {
		t.Errorf("the report has the request %q", err.Sent)
	}
}

// TestTooManyWaitingExchangesAreDropped: without a spool the memory is bounded, and what is
// given up is reported.
func TestTooManyWaitingExchangesAreDropped(t *testing.T) {
	free := make(chan bool)
	w := newWire(t, engine(func() objects.Store { return &stuck{objects.Memory(), free} }), says("A1", "A2", "A3"))
	w.transport = recorder.New(w.repo, recorder.Options{Memory: 10, OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client.Transport = w.transport
	for _, branch := range []string{"a", "b", "c"} {
		w.ask(recorder.On(t.Context(), branch), "Q")
	}
	close(free)
	w.settle()
	if s := w.transport.Stats(); s.Recorded != 1 || s.Dropped != 2 {
		t.Errorf("stats %+v", s)
	}
}

// tripper is a provider of a few lines.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRequestIsSpooledBeforeTheResponse reads the spool while the provider is still working: a
// process that is killed then has the request.
func TestRequestIsSpooledBeforeTheResponse(t *testing.T) {
	for name, length := range map[string]int64{"declared length": 1, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			folder, spooled := t.TempDir(), false
			transport := recorder.New(nil, recorder.Options{Spool: folder, Next: tripper(func(req *http.Request) (*http.Response, error) {
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					return nil, err
				}
				for req.Context().Err() == nil && !spooled { // the spool is written in the background
					spooled = bytes.Contains(files(t, folder), []byte("Are you there?"))
				}
				return nil, errors.New("the provider is down")
			})})
			body := `{"model":"m","messages":[{"role":"user","content":"Are you there?"}]}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.openai.com/v1/chat/completions", io.NopCloser(bytes.NewReader([]byte(body))))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length * int64(len(body))
			if length < 0 {
				req.ContentLength = -1
			}
			if res, err := transport.RoundTrip(req); err == nil {
				res.Body.Close()
				t.Fatal("there is a response")
			}
			if !spooled {
				t.Error("the spool did not have the request while the provider worked")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = transport.Close(ctx)
		})
	}
}

// refuseAll records exchanges while the store fails, and ends the transport as if its process had ended.
func refuseAll(t *testing.T, w *wire, store *failing, folder string, asks ...[]string) {
	t.Helper()
	next := &http.Transport{DisableCompression: true} // as the transport of the proxy
	t.Cleanup(next.CloseIdleConnections)
	w.transport = recorder.New(w.repo, recorder.Options{Next: next, Spool: folder, OnError: func(*recorder.Error) {}})
	w.client.Transport = w.transport
	store.fails.Store(true)
	for _, lines := range asks {
		w.ask(recorder.On(t.Context(), "main"), lines...)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.transport.Close(stopped); err == nil {
		t.Error("everything was committed")
	}
	store.fails.Store(false)
}

// TestCommittedExchangeIsNotCommittedAgain has a process that is killed after it has committed an
// exchange and before the spool has noticed: the next process finds the file of the exchange as if it
// was not committed.
func TestCommittedExchangeIsNotCommittedAgain(t *testing.T) {
	store := &failing{Store: objects.Memory()}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1", "A2"))
	folder := t.TempDir()
	refuseAll(t, w, store, folder, []string{"Q1"}, []string{"Q1", "A1", "Q2"})
	live, err := filepath.Glob(filepath.Join(folder, "live-*"))
	if err != nil || len(live) != 1 {
		t.Fatalf("%q, %v", live, err)
	}
	killed := filepath.Join(t.TempDir(), "live-killed")
	if err := os.CopyFS(killed, os.DirFS(live[0])); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time with what the killed process has left
		w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { t.Error(err) }})
		w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2"})
		if err := w.transport.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(folder, "live-killed"), os.DirFS(killed)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommittedExchangeIsFoundBesideDamage is TestCommittedExchangeIsNotCommittedAgain with a branch whose last
// content is damaged: its headers and origins show that the exchanges are committed.
func TestCommittedExchangeIsFoundBesideDamage(t *testing.T) {
	bad := &damaged{objects.Memory(), map[objects.ID]bool{}}
	store := &failing{Store: bad}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1"))
	folder := t.TempDir()
	refuseAll(t, w, store, folder, []string{"Q1"})
	live, err := filepath.Glob(filepath.Join(folder, "live-*"))
	if err != nil || len(live) != 1 {
		t.Fatalf("%q, %v", live, err)
	}
	killed := filepath.Join(t.TempDir(), "live-killed")
	if err := os.CopyFS(killed, os.DirFS(live[0])); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { t.Error(err) }})
		if err := w.transport.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(bad.ids) == 0 {
			tip, err := w.repo.Show(t.Context(), "main")
			if err != nil {
				t.Fatal(err)
			}
			bad.ids[tip.ContentID] = true
		}
		if err := os.CopyFS(filepath.Join(folder, "live-killed"), os.DirFS(killed)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := store.Refs(t.Context(), objects.RefQuery{Prefix: "refs/heads/"}); err != nil || len(list) != 1 {
		t.Errorf("branches %v, %v; want only main", list, err)
	}
}

// TestRecoveredExchangesAlwaysFit has more in the spool than fits into memory: nothing of it is dropped.
func TestRecoveredExchangesAlwaysFit(t *testing.T) {
	store := &failing{Store: objects.Memory()}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1", "A2", "A3"))
	folder := t.TempDir()
	refuseAll(t, w, store, folder, []string{"Q1"}, []string{"Q1", "A1", "Q2"}, []string{"Q1", "A1", "Q2", "A2", "Q3"})
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, Memory: 10})
	w.want(map[string]string{"main": "Q1 | A1 | Q2 | A2 | Q3 | A3"})
	if err := w.transport.Close(t.Context()); err != nil { // nothing writes when the folder is removed
		t.Error(err)
	}
	if s := w.transport.Stats(); s != (recorder.Stats{Recorded: 3}) {
		t.Errorf("stats %+v", s)
	}
}

// TestRecoveredRefusalKeepsNoKey has a provider that repeats the key of a request in a compressed refusal.
// The process that commits it does not know the key, and reads the bodies from the spool.
func TestRecoveredRefusalKeepsNoKey(t *testing.T) {
	store := &failing{Store: objects.Memory()}
	w := newWire(t, engine(func() objects.Store { return store }), func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Encoding", "gzip")
		out.WriteHeader(http.StatusUnauthorized)
		out.Write(gzipped("the key walrus-and-carpenter is wrong"))
	})
	folder := t.TempDir()
	refuseAll(t, w, store, folder, []string{"Q1"})
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, Memory: 10})
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	note, err := w.repo.Show(t.Context(), "main")
	if err != nil || !strings.Contains(note.Block.String(), "401") || strings.Contains(note.Block.String(), "walrus") {
		t.Errorf("the note is %v, %v", note, err)
	}
}

// damaged is a store in which some objects are corrupt.
type damaged struct {
	objects.Store
	ids map[objects.ID]bool
}

func (s *damaged) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	for _, id := range ids {
		if s.ids[id] {
			return func(yield func(objects.Object, error) bool) { yield(objects.Object{}, &objects.CorruptError{ID: id}) }
		}
	}
	return s.Store.Get(ctx, ids)
}

// TestRecoveredExchangeOfADamagedBranch recovers an exchange whose branch cannot be read: it is committed to
// a branch of its own.
func TestRecoveredExchangeOfADamagedBranch(t *testing.T) {
	bad := &damaged{objects.Memory(), map[objects.ID]bool{}}
	store := &failing{Store: bad}
	w := newWire(t, engine(func() objects.Store { return store }), says("A1", "A2"))
	w.ask(recorder.On(t.Context(), "main"), "Q1")
	w.settle()
	folder := t.TempDir()
	refuseAll(t, w, store, folder, []string{"Q1", "A1", "Q2"})
	tip, err := w.repo.Show(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	bad.ids[tip.OriginID] = true
	ctx, cancel := context.WithCancel(t.Context())
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) {
		t.Error(err)
		cancel() // it would be tried for ever
	}})
	if err := w.transport.Close(ctx); err != nil {
		t.Fatal(err)
	}
	tip, err = w.repo.Show(t.Context(), "main/fork-2")
	if err != nil || tip.Block.String() != "A2" {
		t.Errorf("the fork ends with %v, %v", tip, err)
	}
}

// TestFailedExchangeKeepsNoSplitSecret has a request that cannot be read, and a stream that divides a secret:
// the spool keeps the words of the response without the secret.
func TestFailedExchangeKeepsNoSplitSecret(t *testing.T) {
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{"The token is ghp_0123456789abcde", "fghijABCDEFGHIJ012345", " for today."} {
			fmt.Fprintf(out, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
		}
		io.WriteString(out, "data: [DONE]\n\n")
	})
	folder := t.TempDir()
	w.transport = recorder.New(w.repo, recorder.Options{Spool: folder, OnError: func(err *recorder.Error) { w.errs <- err }})
	res, err := w.transport.RoundTrip(w.request(t.Context(), "{"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	if err := w.transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.transport.Stats(); s.Failed != 1 {
		t.Errorf("stats %+v", s)
	}
	kept := files(t, folder)
	if !bytes.Contains(kept, []byte("The token is")) || !bytes.Contains(kept, []byte("for today.")) || bytes.Contains(kept, []byte("ABCDEFGHIJ012345")) {
		t.Errorf("the spool has %q", kept)
	}
}
