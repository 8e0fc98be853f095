package recorder_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
	"github.com/tract-vcs/tract/recorder"
)

// wire is a server that answers as it is told, a repo, and a client that records.
type wire struct {
	t         *testing.T
	repo      *tract.Repo
	transport *recorder.Transport
	client    *http.Client
	url       string
	errs      chan *recorder.Error
}

func newWire(t *testing.T, url string, handler http.HandlerFunc) *wire {
	t.Helper()
	repo, err := tract.Open(t.Context(), url, tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w := &wire{t: t, repo: repo, url: server.URL, errs: make(chan *recorder.Error, 100)}
	w.records(repo)
	return w
}

func (w *wire) records(repo *tract.Repo) {
	if w.transport != nil {
		w.settle()
	}
	w.transport = recorder.New(repo, recorder.Options{OnError: func(err *recorder.Error) { w.errs <- err }})
	w.client = &http.Client{Transport: w.transport}
}

// says is a handler that gives one JSON answer after the other in chat.
func says(texts ...string) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, chatAnswer(texts[0]))
		texts = texts[1:]
	}
}

func chatAnswer(text string) string {
	return fmt.Sprintf(`{"id":"c-%s","model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q,"reasoning_content":"thought of %s"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, text, text, text)
}

// chatBody is a request that says lines in turn, beginning with the user. A first
// line "system: ..." is an instruction.
func chatBody(lines ...string) string {
	var list []string
	n := 0
	for _, line := range lines {
		role := []string{"user", "assistant"}[n%2]
		if words, ok := strings.CutPrefix(line, "system: "); ok {
			role, line = "system", words
		} else {
			n++
		}
		list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, role, line))
	}
	return `{"model":"m","messages":[` + strings.Join(list, ",") + `]}`
}

func (w *wire) request(ctx context.Context, body string) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return req
}

// ask sends a request and returns the body of the answer.
func (w *wire) ask(ctx context.Context, lines ...string) string {
	w.t.Helper()
	res, err := w.client.Do(w.request(ctx, chatBody(lines...)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// branches is what is on each branch but thoughts, oldest first.
func (w *wire) branches() map[string]string {
	w.t.Helper()
	w.settle()
	all := map[string]string{}
	for b, err := range w.repo.Refs(w.t.Context(), tract.RefQuery{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		var words []string
		for c, err := range w.repo.Log(w.t.Context(), b.Name, tract.LogOptions{}) {
			if err != nil {
				w.t.Fatal(err)
			}
			if c.Kind.String() != "reasoning" {
				first, _, _ := strings.Cut(c.Block.String(), "\n")
				words = append([]string{first}, words...)
			}
		}
		all[b.Name] = strings.Join(words, " | ")
	}
	return all
}

// settle waits until everything is committed.
func (w *wire) settle() {
	w.t.Helper()
	if err := w.transport.Wait(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) want(want map[string]string) {
	w.t.Helper()
	have := w.branches()
	if fmt.Sprint(have) != fmt.Sprint(want) {
		w.t.Errorf("have %q\nwant %q", have, want)
	}
	select {
	case err := <-w.errs:
		w.t.Errorf("%v", err)
	default:
	}
}

// TestResponseIsNotBuffered has the server continue only when the client has received the bytes sent
// before: a recorder that collected them first would wait forever.
func TestResponseIsNotBuffered(t *testing.T) {
	got := make(chan bool)
	chunks := []string{
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n\n",
		"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}]}\n\n",
		"data: [DONE]\n\n",
	}
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for _, chunk := range chunks {
			io.WriteString(out, chunk)
			out.(http.Flusher).Flush()
			<-got
		}
	})
	res, err := w.client.Do(w.request(recorder.On(t.Context(), "main"), chatBody("Hi")))
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range chunks {
		have := make([]byte, len(chunk))
		if _, err := io.ReadFull(res.Body, have); err != nil || string(have) != chunk {
			t.Fatalf("have %q, %v", have, err)
		}
		got <- true
	}
	res.Body.Close() // without the end being read, as libraries do
	w.want(map[string]string{"main": "Hi | Hello"})
}

// engines counts those that were registered: a scheme can be only once.
var engines atomic.Int32

// engine is the URL of a store of its own.
func engine(open func() objects.Store) string {
	scheme := fmt.Sprint("test", engines.Add(1))
	objects.Register(scheme, func(context.Context, string, objects.Options) (objects.Store, error) { return open(), nil })
	return scheme + ":"
}

// TestFailingStoreDoesNotAffectTheClient fails every write: the client gets its response, and the
// hook the bytes of the exchange.
func TestFailingStoreDoesNotAffectTheClient(t *testing.T) {
	url := engine(func() objects.Store {
		plan := objectstest.Plan{objectstest.Apply: {}}
		for n := range 1000 {
			plan[objectstest.Apply][n] = objectstest.Before
		}
		return objectstest.Faulty(objects.Memory(), plan)
	})
	w := newWire(t, url, says("Hello"))
	if have := w.ask(t.Context(), "Hi"); have != chatAnswer("Hello") {
		t.Errorf("the client saw %q", have)
	}
	err := <-w.errs
	if !errors.Is(err, objectstest.ErrFault) || string(err.Sent) != chatBody("Hi") || string(err.Came) != chatAnswer("Hello") {
		t.Errorf("the hook was told %v, %q, %q", err, err.Sent, err.Came)
	}
}

// broken is a store whose writes panic.
type broken struct{ objects.Store }

func (broken) Apply(context.Context, objects.Batch) error { panic("out of order") }

// TestPanickingStoreDoesNotAffectTheClient: the program that is recorded goes on.
func TestPanickingStoreDoesNotAffectTheClient(t *testing.T) {
	w := newWire(t, engine(func() objects.Store { return broken{objects.Memory()} }), says("Hello"))
	if have := w.ask(t.Context(), "Hi"); have != chatAnswer("Hello") {
		t.Errorf("the client saw %q", have)
	}
	if err := <-w.errs; err.Error() == "" || !strings.Contains(err.Err.Error(), "out of order") {
		t.Errorf("the hook was told %v", err)
	}
}

// stuck is a store whose writes wait.
type stuck struct {
	objects.Store
	free chan bool
}

func (s *stuck) Apply(ctx context.Context, b objects.Batch) error {
	<-s.free
	return s.Store.Apply(ctx, b)
}

// TestClientDoesNotWaitForAHangingStore returns a response while nothing can be written, and finds
// it in the history later.
func TestClientDoesNotWaitForAHangingStore(t *testing.T) {
	free := make(chan bool)
	w := newWire(t, engine(func() objects.Store { return &stuck{objects.Memory(), free} }), says("Hello", "Again"))
	on := recorder.On(t.Context(), "main")
	if have := w.ask(on, "Hi"); have != chatAnswer("Hello") {
		t.Errorf("the client saw %q", have)
	}
	w.ask(on, "Hi", "Hello", "More") // it waits for the first, out of sight
	close(free)
	if err := w.transport.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"main": "Hi | Hello | More | Again"})
}

func TestAbandonedResponseIsRescued(t *testing.T) {
	left := make(chan bool)
	asked := 0
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if asked++; asked > 1 {
			io.WriteString(out, chatAnswer("Whole"))
			return
		}
		io.WriteString(out, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half of\"}}]}\n\n")
		out.(http.Flusher).Flush()
		<-left
	})
	ctx, cancel := context.WithCancel(recorder.On(t.Context(), "main"))
	res, err := w.client.Do(w.request(ctx, chatBody("Hi")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("the client saw %v", err)
	}
	res.Body.Close()
	close(left)
	w.settle()
	list, err := w.repo.Rescues(t.Context())
	if err != nil || len(list) != 1 || list[0].Branch != "main" {
		t.Fatalf("rescued: %v, %v", list, err)
	}
	reply := list[0].Commits
	if err != nil || len(reply) != 1 || reply[0].Block.String() != "Half of" || !reply[0].Origin.Incomplete {
		t.Errorf("rescued: %v, %v", reply, err)
	}
	w.ask(recorder.On(t.Context(), "main"), "Hi")
	w.want(map[string]string{"main": "Hi | Whole"})
}

func TestCompressedAnswersPassAsTheyAre(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, chatAnswer("Hello"))
	z.Close()
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Encoding", "gzip")
		out.Write(packed.Bytes())
	})
	req := w.request(recorder.On(t.Context(), "main"), chatBody("Hi"))
	req.Header.Set("Accept-Encoding", "gzip") // so that net/http leaves the answer alone
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if have, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(have, packed.Bytes()) {
		t.Errorf("the client saw %q, %v", have, err)
	}
	w.want(map[string]string{"main": "Hi | Hello"})
}

func TestOtherRequestsPassThrough(t *testing.T) {
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) { io.Copy(out, r.Body) })
	for _, path := range []string{"/v1/messages/count_tokens", "/v1/embeddings", "/", "/v1/models"} {
		res, err := w.client.Post(w.url+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if err := w.transport.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	w.want(map[string]string{})
}

func TestAnswersOfGenerateAreNotRecordedTwice(t *testing.T) {
	w := newWire(t, "mem:", says("Hello"))
	client, err := providers.Open("deepseek", providers.Config{BaseURL: w.url + "/v1", APIKey: "key-key-key", Model: "m", HTTP: w.client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Branch("main").Ask(t.Context(), client, "Hi", tract.AskOptions{NoStream: true}); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"main": "Hi | Hello"})
}

// TestABodyThatCannotBeReadTwice has a request body without a way to read it again.
func TestABodyThatCannotBeReadTwice(t *testing.T) {
	w := newWire(t, "mem:", says("A1"))
	req := w.request(recorder.On(t.Context(), "main"), "")
	body := chatBody("Q1")
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(strings.NewReader(body)), nil, int64(len(body))
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	w.want(map[string]string{"main": "Q1 | A1"})
}

// TestRecordedRequestsCanBeProved makes the requests of recorded replies again, and
// finds the hash of what was sent.
func TestRecordedRequestsCanBeProved(t *testing.T) {
	w := newWire(t, "mem:", says("A1", "A2"))
	main := recorder.On(t.Context(), "main")
	w.ask(main, "system: Be brief.", "Q1")
	w.ask(main, "system: Be brief.", "Q1", "A1", "Q2")
	targets := func(m *compile.Manifest) (llm.Target, error) {
		return providers.Open(m.Provider, providers.Config{Dialect: m.Dialect, Model: m.Model})
	}
	w.settle()
	n := 0
	for x, err := range inspect.Verify(t.Context(), w.repo, targets, inspect.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; x.Outcome != inspect.AsSent {
			t.Errorf("%v: %s", x.Outcome, x.Why)
		}
		sent := x.Manifest.Sent
		if sent != objects.Hash([]byte(chatBody("system: Be brief.", "Q1"))) && sent != objects.Hash([]byte(chatBody("system: Be brief.", "Q1", "A1", "Q2"))) {
			t.Errorf("the manifest has another hash than what was sent")
		}
	}
	if n != 2 {
		t.Errorf("%d requests", n)
	}
}
