package recorder_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// answers is a handler that gives one body after the other.
func answers(bodies ...string) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, bodies[0])
		bodies = bodies[1:]
	}
}

// post sends a body to a path and reads the answer.
func (w *wire) post(path, body string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		w.t.Fatal(err)
	}
}

// wantHistories compares what is on the branches, whatever their names are.
func (w *wire) wantHistories(want ...string) {
	w.t.Helper()
	missing := map[string]bool{}
	for _, text := range want {
		missing[text] = true
	}
	have := w.branches()
	for _, text := range have {
		if !missing[text] {
			w.t.Errorf("unexpected history %q", text)
		}
		delete(missing, text)
	}
	for text := range missing {
		w.t.Errorf("no history %q, have %q", text, have)
	}
	for len(w.errs) > 0 {
		w.t.Error(<-w.errs)
	}
}

func TestOllamaGenerateIsRecorded(t *testing.T) {
	w := newWire(t, "mem://", answers(
		`{"model":"qwen3","response":"","done":true,"done_reason":"load"}`,
		`{"model":"qwen3","response":"Mo","thinking":"Green.","done":false}`+"\n"+`{"model":"qwen3","response":"ss.","done":false}`+"\n"+
			`{"model":"qwen3","response":"","done":true,"done_reason":"stop","context":[1,2],"prompt_eval_count":3,"eval_count":2}`+"\n",
	))
	w.post("/api/generate", `{"model":"qwen3","prompt":""}`) // loads the model
	w.post("/api/generate", `{"model":"qwen3","system":"Be brief.","prompt":"What is it?","options":{"temperature":0}}`)
	w.wantHistories("the request has no message | the response has no content; finish reason: load", "Be brief. | What is it? | Moss.")
}

// TestOllamaCallsWithoutIDsGoOn: Ollama gives calls no ids, and a client sends none.
func TestOllamaCallsWithoutIDsGoOn(t *testing.T) {
	call := `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"look","arguments":{"n":1}}}]}`
	w := newWire(t, "mem://", answers(
		`{"model":"m","created_at":"2026-11-01T00:00:00Z","message":`+call+`,"done":true,"done_reason":"stop"}`,
		`{"model":"m","created_at":"2026-11-01T00:00:01Z","message":{"role":"assistant","content":"Moss."},"done":true,"done_reason":"stop"}`,
	))
	question := `{"role":"user","content":"What is it?"}`
	w.post("/api/chat", `{"model":"m","stream":false,"messages":[`+question+`]}`)
	w.post("/api/chat", `{"model":"m","stream":false,"messages":[`+question+`,`+call+`,{"role":"tool","tool_name":"look","content":"green"}]}`)
	w.wantHistories(`What is it? | {"n":1} | green | Moss.`)
}

func TestCohereVersion1IsRecorded(t *testing.T) {
	calls := `"tool_calls":[{"name":"look","parameters":{"n":1}}]`
	line := func(members string) string { return "{" + members + "}\n" }
	w := newWire(t, "mem://", answers(
		`{"response_id":"r1","generation_id":"g1","text":"I will look.",`+calls+`,"finish_reason":"COMPLETE","meta":{"tokens":{"input_tokens":3,"output_tokens":2}}}`,
		line(`"is_finished":false,"event_type":"stream-start","generation_id":"g2"`)+line(`"is_finished":false,"event_type":"text-generation","text":"Mo"`)+
			line(`"is_finished":false,"event_type":"text-generation","text":"ss."`)+
			line(`"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"generation_id":"g2","text":"Moss.","meta":{"tokens":{"input_tokens":3,"output_tokens":2}}}`),
		`{"generation_id":"g3","text":"Yes.","finish_reason":"COMPLETE"}`,
	))
	tools := `"model":"command-r","preamble":"Be brief.","tools":[{"name":"look","description":"Look.","parameter_definitions":{"n":{"type":"int","required":true}}}]`
	history := `{"role":"USER","message":"What is it?"},{"role":"CHATBOT","message":"I will look.",` + calls + `}`
	results := `"tool_results":[{"call":{"name":"look","parameters":{"n":1}},"outputs":[{"text":"green"}]}]`
	w.post("/v1/chat", `{`+tools+`,"message":"What is it?"}`)
	w.post("/v1/chat", `{`+tools+`,"stream":true,"message":"","chat_history":[`+history+`],`+results+`}`)
	w.post("/v1/chat", `{`+tools+`,"message":"Sure?","chat_history":[`+history+`,{"role":"TOOL",`+results+`},{"role":"CHATBOT","message":"Moss."}]}`)
	w.wantHistories(`Be brief. | What is it? | I will look. | {"n":1} | [{"text":"green"}] | Moss. | Sure? | Yes.`)
}
