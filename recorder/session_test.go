package recorder_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/inspect"
)

// sessionKey names the session of requests, as the client of a provider does in a header.
type sessionKey struct{}

// session is a transport that adds the headers of a session.
type session struct{ next http.RoundTripper }

func (s session) RoundTrip(req *http.Request) (*http.Response, error) {
	name, _ := req.Context().Value(sessionKey{}).(string)
	name, agent, _ := strings.Cut(name, "/")
	if name != "" {
		req.Header.Set("X-Tract-Session", name)
	}
	if agent != "" {
		req.Header.Set("X-Tract-Agent", agent)
	}
	req.Header.Set("User-Agent", "test/1.0")
	return s.next.RoundTrip(req)
}

// in is a context whose requests are of a session, or of an agent of it: SESSION/AGENT.
func in(t *testing.T, name string) context.Context {
	return context.WithValue(t.Context(), sessionKey{}, name)
}

func newSessions(t *testing.T, answers ...string) *wire {
	t.Helper()
	var mu sync.Mutex
	w := newWire(t, "mem:", func(out http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		answer := answers[0]
		answers = answers[1:]
		if !strings.HasPrefix(answer, "{") {
			answer = chatAnswer(answer)
		}
		fmt.Fprint(out, answer)
	})
	w.client.Transport = session{w.transport}
	return w
}

// TestSessionsWithEqualTextStaySeparate has two sessions send the same messages and get the same
// responses.
func TestSessionsWithEqualTextStaySeparate(t *testing.T) {
	w := newSessions(t, "A1", "A1", "A2", "B2")
	w.ask(in(t, "one"), "Q1")
	w.ask(in(t, "other"), "Q1")
	w.ask(in(t, "other"), "Q1", "A1", "Q2")
	w.ask(in(t, "one"), "Q1", "A1", "Q2")
	w.want(map[string]string{"proxy/test/one": "Q1 | A1 | Q2 | B2", "proxy/test/other": "Q1 | A1 | Q2 | A2"})
}

// TestChangedHistoryIsRecordedAsEdits shortens a tool result, and replaces a reminder: the branch
// continues, and its prompt equals what the client sends.
func TestChangedHistoryIsRecordedAsEdits(t *testing.T) {
	t.Run("call with an id", func(t *testing.T) { changeHistory(t, `"id":"call_1",`) })
	t.Run("call without an id", func(t *testing.T) { changeHistory(t, "") }) // the client makes one
}

func changeHistory(t *testing.T, id string) {
	call := `{"id":"c-1","model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{` + id + `"type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`
	w := newSessions(t, call, "A2", "A3")
	body := func(list ...string) {
		t.Helper()
		res, err := w.client.Do(w.request(in(t, "s"), `{"model":"m","messages":[`+strings.Join(list, ",")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	question := `{"role":"user","content":"Q1"}`
	reminder := `{"role":"user","content":"<system-reminder>be quick</system-reminder>"}`
	called := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	result := func(text string) string {
		return `{"role":"tool","tool_call_id":"call_1","content":"` + text + `"}`
	}
	body(question, reminder)
	body(question, reminder, called, result("a long result"))
	body(question, called, result("[cleared]"), `{"role":"assistant","content":"A2"}`, `{"role":"user","content":"Q2"}`)
	w.settle()
	p, err := w.repo.Compile(t.Context(), "proxy/test/s", tract.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			words = append(words, b.String())
		}
	}
	if have := strings.Join(words, " | "); have != "Q1 | {} | [cleared] | A2 | Q2 | A3" {
		t.Errorf("the prompt is %q", have)
	}
	if have := w.branches(); len(have) != 1 {
		t.Errorf("branches %q", have)
	}
}

// TestForkKeepsTheMainBranch goes back in a session, resumes it under a new id, and continues the
// first one.
func TestForkKeepsTheMainBranch(t *testing.T) {
	seal := func(text string) string {
		return `{"id":"c-` + text + `","model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_of_` + text + `","type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`
	}
	w := newSessions(t, seal("A1"), "A2", "F2", "R3", "A3")
	ask := func(name string, list ...string) {
		t.Helper()
		text := []string{`{"role":"user","content":"Q1"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"call_of_A1","type":"function","function":{"name":"look","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"call_of_A1","content":"seen"}`}
		if len(list) == 0 {
			text = text[:1]
		}
		for i, line := range list {
			if line != "" {
				text = append(text, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], line))
			}
		}
		res, err := w.client.Do(w.request(in(t, name), `{"model":"m","messages":[`+strings.Join(text, ",")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	ask("one")
	ask("one", "Q2")
	ask("one", "Q2 in other words")
	ask("two", "Q2", "A2", "R3?")
	ask("one", "Q2", "A2", "Q3")
	w.want(map[string]string{
		"proxy/test/one":   "Q1 | {} | seen | Q2 | A2 | Q3 | A3",
		"proxy/test/one/2": "Q1 | {} | seen | Q2 in other words | F2",
		"proxy/test/two":   "Q1 | {} | seen | Q2 | A2 | R3? | R3",
	})
	for _, branch := range []string{"proxy/test/one/2", "proxy/test/two"} {
		why, err := inspect.Why(t.Context(), w.repo, branch)
		if err != nil || len(why.Links) != 1 || why.Links[0].Name != "forked_from" {
			t.Errorf("%s: links %v, %v", branch, why.Links, err)
		}
	}
}

// TestASubAgentIsLinkedToItsCall: the link leads to the call whose argument is the question of
// the sub-agent.
func TestASubAgentIsLinkedToItsCall(t *testing.T) {
	w := newSessions(t, `{"id":"c-1","model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"task","arguments":"{\"prompt\":\"other\"}"}},{"id":"call_2","type":"function","function":{"name":"task","arguments":"{\"prompt\":\"look around\"}"}}]}}]}`, "done")
	w.ask(in(t, "s"), "Q1")
	w.ask(in(t, "s/agent7"), "look around")
	w.want(map[string]string{"proxy/test/s": `Q1 | {"prompt":"other"} | {"prompt":"look around"}`, "proxy/test/s/agent-agent7": "look around | done"})
	why, err := inspect.Why(t.Context(), w.repo, "proxy/test/s/agent-agent7")
	if err != nil || len(why.Links) != 1 || why.Links[0].Name != "parent_commit" || why.Commit.Origin.Original["parent_call"] != "call_2" {
		t.Errorf("links %v of %v, %v", why.Links, why.Commit.Origin.Original, err)
	}
	agents, err := inspect.StartedAgents(t.Context(), w.repo, 10)
	if err != nil || len(agents) != 1 || !slices.Equal(agents[why.Links[0].Commit.ID], []string{"proxy/test/s/agent-agent7"}) {
		t.Errorf("the call started %v, %v", agents, err)
	}
}

// TestRequestWithoutASessionContinuesOnlyAWholeConversation checks that a first request always
// begins a history, and that a later one continues the one conversation that it repeats; if there
// are two, it begins a new history with a note.
func TestRequestWithoutASessionContinuesOnlyAWholeConversation(t *testing.T) {
	w := newSessions(t, "A1", "A2", "A1", "A3", "B1")
	w.ask(t.Context(), "Q1")
	w.ask(t.Context(), "Q1", "A1", "Q2")
	w.ask(t.Context(), "Q1")
	w.ask(t.Context(), "Q1", "A1", "Q2") // of the second conversation: the first has gone on
	var words []string
	for _, text := range w.branches() {
		words = append(words, text)
	}
	if len(words) != 2 || !strings.HasPrefix(words[0], "Q1 | A1 | Q2 | A") || !strings.HasPrefix(words[1], "Q1 | A1 | Q2 | A") {
		t.Errorf("have %q", words)
	}
	w = newSessions(t, "A1", "A1", "A2")
	w.ask(t.Context(), "Q1")
	w.ask(t.Context(), "Q1")
	w.ask(t.Context(), "Q1", "A1", "Q2")
	ambiguous := 0
	for _, text := range w.branches() {
		if strings.Contains(text, "ambiguous: ") {
			ambiguous++
		}
	}
	if have := w.branches(); len(have) != 3 || ambiguous != 1 {
		t.Errorf("have %q", have)
	}
}
