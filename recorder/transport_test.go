package recorder_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/recorder"
)

// run is agents that talk with a server through a recording transport.
type run struct {
	t      *testing.T
	repo   *tract.Repo
	server *httptest.Server
	client *http.Client

	transport *recorder.Transport

	mu      sync.Mutex
	next    map[string]step   // what the server says, by the name in a header
	landed  map[string]landed // where replies are, by their text
	asked   int
	refused int
	agents  int
}

type step struct {
	status int
	body   string
}

type landed struct {
	branch string
	reply  *tract.Response
}

func newRun(t *testing.T) *run {
	repo, err := tract.Open(t.Context(), "mem:", tract.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, repo: repo, next: map[string]step{}, landed: map[string]landed{}}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		r.mu.Lock()
		s := r.next[req.Header.Get("X-Step")]
		r.mu.Unlock()
		w.Header().Set("Request-Id", "req-"+req.Header.Get("X-Step"))
		w.WriteHeader(s.status)
		io.WriteString(w, s.body)
	}))
	t.Cleanup(r.server.Close)
	r.transport = recorder.New(repo, recorder.Options{
		OnResponse: func(branch string, reply *tract.Response) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.landed[reply.Text] = landed{branch, reply}
		},
		OnError: func(err *recorder.Error) { t.Errorf("%v\nsent %s", err, err.Sent) },
	})
	r.client = &http.Client{Transport: r.transport}
	return r
}

// post sends what an agent has and returns the answer as it came.
func (r *run) post(a *agent, key string, status int, body string, stream bool) string {
	r.mu.Lock()
	r.next[key] = step{status, body}
	r.asked++
	if status != 200 {
		r.refused++
	}
	r.mu.Unlock()
	path := "/v1/messages"
	if a.dialect == "chat" {
		path = "/v1/chat/completions"
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server.URL+path, strings.NewReader(a.body(stream)))
	if err != nil {
		r.t.Error(err)
		return ""
	}
	req.Header.Set("X-Step", key)
	req.Header.Set("Authorization", "Bearer sk-very-secret-"+a.name)
	if a.session {
		req.Header.Set("X-Tract-Session", a.name)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	defer res.Body.Close()
	came, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Error(err)
	}
	if err := r.transport.Wait(r.t.Context()); err != nil {
		r.t.Error(err)
	}
	return string(came)
}

// ask lets an agent have an answer, now and then after a refusal, and checks that
// it landed where the agent's history is.
func (r *run) ask(a *agent, key string, calls []called, at *objects.ID) {
	stream := a.rng.IntN(2) == 0
	reply := said{role: "assistant", thought: "thought of " + key, text: "Answer " + key + ". " + a.plant(), calls: calls}
	if refused := a.rng.IntN(6) == 0; refused && !a.steady && (a.session || len(a.history) > 1) {
		r.post(a, key+"-no", 529, `{"error":{"type":"overloaded_error","message":"too much: Bearer sk-very-secret-`+a.name+`","param":`+text(a.plant())+`}}`, stream)
	}
	body := a.answer(reply, stream)
	if came := r.post(a, key, 200, body, stream); came != body {
		r.t.Errorf("%s: other bytes came than were sent", key)
	}
	a.history = append(a.history, reply)
	r.mu.Lock()
	got, ok := r.landed[reply.text]
	r.mu.Unlock()
	if !ok {
		r.t.Errorf("%s: no reply landed", key)
		return
	}
	if !at.IsZero() {
		below := false
		for c, err := range commit.Walk(r.t.Context(), r.repo.Store(), got.reply.Commits[0], 0) {
			if err != nil {
				r.t.Error(err)
				break
			}
			below = below || c.ID == *at
		}
		if !below {
			r.t.Errorf("%s: it did not go on where the agent was", key)
		}
	}
	*at = got.reply.Commits[len(got.reply.Commits)-1]
}

// life is one agent: turns with loops of tool calls, some of which are answered by
// agents of its own.
func (r *run) life(a *agent, turns, depth int, started objects.ID) objects.ID {
	at := started
	r.mu.Lock()
	r.agents++
	r.mu.Unlock()
	for turn := range turns {
		a.history = append(a.history, said{role: "user", text: fmt.Sprintf("Question %d of %s?", turn, a.name) + a.plant()})
		for loop := range 1 + a.rng.IntN(3) {
			key := fmt.Sprintf("%s.%d.%d", a.name, turn, loop)
			var calls []called
			for n := range a.rng.IntN(4) {
				calls = append(calls, called{id: fmt.Sprintf("call_%s_%d", strings.ReplaceAll(key, ".", "_"), n), name: "weather", city: "Oslo " + key + a.plant(), unit: fmt.Sprint("u", n)})
			}
			r.ask(a, key, calls, &at)
			if len(calls) == 0 {
				break
			}
			for i := range calls {
				calls[i].result = fmt.Sprintf("%d degrees in %s", i, key) + a.plant()
				if depth > 0 && i == 0 && a.rng.IntN(3) == 0 {
					sub := &agent{name: key + "-sub", dialect: a.dialect, system: "You are " + key + "'s helper." + a.plant(), rng: a.rng, plants: a.plants, session: a.session}
					r.life(sub, 1, depth-1, objects.ID{})
				}
			}
			a.history = append(a.history, said{role: "tool", calls: calls})
		}
		if last := a.history[len(a.history)-1]; last.role == "tool" {
			r.ask(a, fmt.Sprintf("%s.%d.end", a.name, turn), nil, &at)
		}
	}
	return at
}

// The run of agents: its seed, and how many requests it makes.
const (
	seed         = 7
	wantRequests = 124
)

// TestConcurrentAgentsOfTwoDialects runs agents of two dialects, with sub-agents, at the same time.
// Each request sends the history in another form, and is recorded on the right branch.
func TestConcurrentAgentsOfTwoDialects(t *testing.T) {
	t.Run("without secrets", func(t *testing.T) { manyAgents(t, nil) })
	t.Run("with secrets", func(t *testing.T) {
		var plants []string
		for _, p := range secretstest.Plant(51) {
			plants = append(plants, p.Text())
		}
		repo := manyAgents(t, plants)
		for _, p := range secretstest.Plant(51) {
			if stored(t, repo, p.Secret) {
				t.Errorf("a secret of %s is stored", p.Rule)
			}
		}
	})
}

// stored tells whether a text is in any object of a store, as it is or in JSON.
func stored(t *testing.T, repo *tract.Repo, words string) bool {
	t.Helper()
	ids, err := repo.Store().Find(t.Context(), 0, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	quoted := text(words)
	for o, err := range repo.Store().Get(t.Context(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(o.Data, []byte(words)) || bytes.Contains(o.Data, []byte(quoted[1:len(quoted)-1])) {
			return true
		}
	}
	return false
}

// manyAgents lets them talk, with these texts in all that they and the models say.
func manyAgents(t *testing.T, plants []string) *tract.Repo {
	t.Helper()
	r := newRun(t)
	var all sync.WaitGroup
	for n, dialect := range []string{"messages", "chat", "messages", "chat", "messages", "chat"} {
		all.Go(func() {
			a := &agent{name: fmt.Sprint("agent", n), dialect: dialect, system: fmt.Sprintf("You are agent %d.", n), rng: rand.New(rand.NewPCG(seed, uint64(n))), plants: plants, planted: 7 * n, session: n%2 == 0}
			a.system += a.plant()
			r.life(a, 5, 1, objects.ID{})
		})
	}
	all.Wait()
	last := &agent{name: "last", dialect: "chat", system: "You are the last.", steady: true, rng: rand.New(rand.NewPCG(seed, 99))}
	var at objects.ID
	r.agents++
	for r.asked < wantRequests {
		last.history = append(last.history, said{role: "user", text: fmt.Sprintf("Question %d of the last?", r.asked)})
		r.ask(last, fmt.Sprint("last.", r.asked), nil, &at)
	}
	t.Logf("%d requests, %d refused, %d replies", r.asked, r.refused, len(r.landed))
	if len(r.landed) != r.asked-r.refused {
		t.Errorf("%d replies landed, want %d", len(r.landed), r.asked-r.refused)
	}
	if r.asked != wantRequests {
		t.Errorf("%d requests were made, want %d", r.asked, wantRequests)
	}
	branches := map[string]bool{}
	texts := map[string]int{}
	notes := 0
	for _, l := range r.landed {
		branches[l.branch] = true
	}
	for b, err := range r.repo.Refs(t.Context(), tract.RefQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !branches[b.Name] {
			t.Errorf("branch %s has no reply", b.Name)
		}
		for c, err := range r.repo.Log(t.Context(), b.Name, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			words := strings.TrimSpace(c.Block.String())
			if strings.Contains(words, "very-secret") {
				t.Errorf("a key was written down: %q", words)
			}
			switch c.Kind {
			case content.KindNote:
				notes++
			case content.KindUser, content.KindToolResult:
				texts[words]++
			}
		}
	}
	if len(branches) != r.agents {
		t.Errorf("%d branches for %d agents", len(branches), r.agents)
	}
	for words, n := range texts {
		if n != 1 {
			t.Errorf("%q is there %d times", words, n)
		}
	}
	if notes != r.refused {
		t.Errorf("%d notes of %d refusals", notes, r.refused)
	}
	return r.repo
}
