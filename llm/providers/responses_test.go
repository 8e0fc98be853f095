package providers

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// responsesEvents is an answer with a reasoning block, a text and a call, as it streams.
var responsesEvents = []string{
	sseEvent(`{"type":"response.created","response":{"id":"r1","status":"in_progress","model":"gpt-x","output":[],"usage":null}}`),
	sseEvent(`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs1","type":"reasoning","summary":[],"encrypted_content":"bm90IGl0"}}`),
	sseEvent(`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Which "}`),
	sseEvent(`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"one?"}`),
	sseEvent(`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs1","type":"reasoning","summary":[{"type":"summary_text","text":"Which one?"}],"encrypted_content":"U0VBTA=="}}`),
	sseEvent(`{"type":"response.output_item.added","output_index":1,"item":{"id":"m1","type":"message","role":"assistant","content":[]}}`),
	sseEvent(`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"The blue "}`),
	sseEvent(`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"one."}`),
	sseEvent(`{"type":"response.output_item.done","output_index":1,"item":{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"The blue one."}]}}`),
	sseEvent(`{"type":"response.output_item.added","output_index":2,"item":{"id":"fc1","type":"function_call","call_id":"t1","name":"buy","arguments":""}}`),
	sseEvent(`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"n\":"}`),
	sseEvent(`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"1}"}`),
	sseEvent(`{"type":"response.output_item.done","output_index":2,"item":{"id":"fc1","type":"function_call","call_id":"t1","name":"buy","arguments":"{\"n\":1}"}}`),
	sseEvent(`{"type":"response.completed","response":{"id":"r1","status":"completed","model":"gpt-x","usage":{"input_tokens":9,"output_tokens":20,"total_tokens":29}}}`),
}

const responsesAnswer = `{"id":"r1","status":"completed","model":"gpt-x","output":[
	{"id":"rs1","type":"reasoning","summary":[{"type":"summary_text","text":"Which one?"}],"encrypted_content":"U0VBTA=="},
	{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"The blue one."}]},
	{"id":"fc1","type":"function_call","call_id":"t1","name":"buy","arguments":"{\"n\":1}"}],"usage":{"input_tokens":9,"output_tokens":20,"total_tokens":29}}`

func TestResponsesClientConforms(t *testing.T) {
	for _, provider := range []string{"openai-responses", "responses"} {
		llmtest.Run(t, llmtest.Dialect{
			Path:   "/responses",
			Stream: responsesEvents,
			JSON:   responsesAnswer,
			Broken: sseEvent(`{"type":"error","error":{"type":"server_error","message":"Overloaded"}}`),
			Refuse: `{"error":{"type":"invalid_request_error","message":"Incorrect API key: KEY","code":"invalid_api_key"}}`,
		}, func(base, key string) llm.Client {
			c, err := Open(provider, Config{BaseURL: base, APIKey: key})
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	}
}

// TestResponsesProviders: a vendor that speaks chat by default is asked
// over this dialect by a name of its own or with the dialect given.
func TestResponsesProviders(t *testing.T) {
	for name, c := range map[string]Config{
		"openai": {Dialect: "responses"}, "openai-responses": {}, "responses": {}, "xai_responses": {}, "my-server": {Dialect: "Responses"},
		"azure-responses": {},
	} {
		s := llmtest.Start(t, llmtest.Exchange{Path: "/openai/v1/responses", Body: responsesAnswer})
		c.BaseURL, c.APIKey = s.URL()+"/openai/v1", "k"
		client, err := Open(name, c)
		if err != nil {
			t.Fatal(name, err)
		}
		reply, err := client.Generate(t.Context(), &llm.Request{Settings: llm.Settings{Model: "gpt-x"}})
		if err != nil || reply.From.Dialect != "responses" {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
		header, want := "Authorization", "Bearer k"
		if name == "azure-responses" {
			header, want = "Api-Key", "k"
		}
		if have := s.Requests()[0].Header.Get(header); have != want {
			t.Errorf("%s: the key came as %q", name, have)
		}
	}
	p, _ := Lookup("openai-responses")
	if chat, _ := Lookup("openai"); p.BaseURL != chat.BaseURL || p.KeyEnv[0] != chat.KeyEnv[0] || chat.Dialect != "chat" {
		t.Errorf("%+v and %+v are not one vendor", p, chat)
	}
}

// TestResponsesRemovesARefusedField: a model that does not think
// refuses one field of tract's own after the other.
func TestResponsesRemovesARefusedField(t *testing.T) {
	refuse := func(param, message string) llmtest.Exchange {
		return llmtest.Exchange{Status: 400, Body: `{"error":{"type":"invalid_request_error","param":"` + param + `","message":"` + message + `"}}`}
	}
	s := llmtest.Start(t, refuse("reasoning.summary", "Unsupported parameter"), refuse("include", "Encrypted content is not supported with this model."), llmtest.Exchange{Body: responsesAnswer},
		refuse("include", "No."))
	c, err := Open("openai-responses", Config{BaseURL: s.URL(), APIKey: "k", Model: "gpt-x"})
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{Settings: llm.Settings{Reasoning: llm.Reasoning{Effort: "low"}}}
	reply, err := c.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, reply.Sent, `{"model":"gpt-x","input":[],"reasoning":{"effort":"low"},"store":false}`)
	req.Settings.Extra = []byte(`{"include":["file_search_call.results"]}`)
	if _, err := c.Generate(t.Context(), req); wantAPIError(t, err).Status != 400 {
		t.Errorf("a field that somebody asked for was taken back: %v", err)
	}
}

// responsesOf reads events that somebody made up, with an end that is well.
func responsesOf(t *testing.T, events ...string) *llm.Response {
	t.Helper()
	body := strings.Join(events, "") + sseEvent(`{"type":"response.completed","response":{"status":"in_progress"}}`)
	reply, left, err := readAll(mustTarget("responses", "responses", "m"), strings.NewReader(body))
	if err != nil || len(left) > 0 || reply.Finish != "completed" {
		t.Fatalf("%+v, left %v, %v", reply, left, err)
	}
	return reply
}

// summarize is kind, text, id, seal of each block.
func summarize(r *llm.Response) string {
	var words []string
	for _, b := range r.Blocks {
		words = append(words, strings.Join(strings.Fields(kindName(b)+" "+b.String()+" "+b.Form().ID+" "+b.Form().Seal.Data), " "))
	}
	return strings.Join(words, "; ")
}

// TestResponsesUnusualStreams is streams of servers that leave out what others rely on.
func TestResponsesUnusualStreams(t *testing.T) {
	added := func(item string) string {
		return sseEvent(`{"type":"response.output_item.added","output_index":0,"item":` + item + `}`)
	}
	done := func(item string) string {
		return sseEvent(`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`)
	}
	end := func(items string) string {
		return sseEvent(`{"type":"response.completed","response":{"id":"r","output":[` + items + `]}}`)
	}
	text := func(s string) string {
		return sseEvent(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + s + `"}`)
	}
	const hi = `{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"nothing began":        {[]string{text("h"), text("i")}, "text hi"},
		"no item is done":      {[]string{added(`{"id":"m","type":"message","content":[]}`), text("hi")}, "text hi m"},
		"done without words":   {[]string{added(`{"id":"m","type":"message","content":[]}`), text("hi"), done(`{"id":"m","type":"message","content":[]}`)}, "text hi m"},
		"only done":            {[]string{done(hi)}, "text hi m"},
		"done twice":           {[]string{done(hi), done(hi)}, "text hi m"},
		"said after it":        {[]string{done(hi), text("ho")}, "text hi m"},
		"all at one index":     {[]string{done(hi), done(`{"id":"n","type":"message","content":"ho"}`)}, "text hi m; text ho n"},
		"repeated at the end":  {[]string{done(hi), end(hi)}, "text hi m"},
		"another id each time": {[]string{done(hi), end(strings.Replace(hi, `"m"`, `"other"`, 1))}, "text hi m"},
		"only at the end":      {[]string{end(hi + "," + hi)}, "text hi m; text hi m"},
		"a seal at the end":    {[]string{done(`{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"so"}]}`), end(`{"id":"r","type":"reasoning","summary":[],"encrypted_content":"S"}`)}, "reasoning so r S"},
		"two calls, one repeated": {
			[]string{done(`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`), end(`{"type":"function_call","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`)},
			"tool_call {}; tool_call {}",
		},
		"arguments only when done": {
			[]string{added(`{"type":"function_call","call_id":"a","name":"f","arguments":""}`), sseEvent(`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"x\":1}"}`), done(`{"type":"function_call","call_id":"a","name":"f","arguments":""}`)},
			`tool_call {"x":1}`,
		},
		"no index at all": {
			[]string{
				sseEvent(`{"type":"response.output_item.added","item":{"id":"r","type":"reasoning","summary":[]}}`), sseEvent(`{"type":"response.reasoning_text.delta","item_id":"r","delta":"so"}`),
				sseEvent(`{"type":"response.reasoning_summary_text.delta","item_id":"r","delta":"in short"}`),
				sseEvent(`{"type":"response.output_item.done","item":{"id":"r","type":"reasoning","summary":[],"content":[]}}`), sseEvent(`{"type":"response.output_text.delta","delta":"h"}`), sseEvent(`{"type":"response.output_text.delta","delta":"i"}`),
			}, "reasoning so r; text hi",
		},
		"an index that is open": {[]string{added(`{"id":"a","type":"message","content":[]}`), text("hi"), added(`{"id":"b","type":"message","content":[]}`), text("ho")}, "text hi a; text ho b"},
		"words of another item": {[]string{added(`{"id":"x","type":"later"}`), text("hi")}, `other:later {"id":"x","type":"later"}`},
		"an empty message":      {[]string{done(`{"id":"m","type":"message","content":[]}`)}, `other:message {"id":"m","type":"message","content":[]}`},
		"events nobody knows":   {[]string{sseEvent(`{"type":"response.later.delta","output_index":0,"delta":"x"}`), sseEvent(`{"type":"keepalive"}`), done(hi)}, "text hi m"},
		"a part out of turn":    {[]string{sseEvent(`{"type":"response.output_text.delta","output_index":0,"content_index":7,"delta":"x"}`), done(hi)}, "text hi m"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarize(responsesOf(t, c.events...)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestResponsesReportsMalformedBodies(t *testing.T) {
	for body, want := range map[string]error{
		`{}`:                                          llm.ErrProtocol,
		`[1]`:                                         llm.ErrProtocol,
		`{"id":"x","object":"chat.completion"}`:       llm.ErrProtocol,
		`{"status":"in_progress","output":[]}`:        llm.ErrTruncated,
		`{"status":"queued"}`:                         llm.ErrTruncated,
		sseEvent(`{"type":"response.created"}`):       llm.ErrTruncated,
		sseEvent(`{"type"}`) + sseEvent(`{}`):         llm.ErrProtocol,
		`[{"error":{"code":429,"message":"Later."}}]`: &llm.APIError{},
		`{"type":"error","message":"No."}`:            &llm.APIError{},
		`{"status":"failed"}`:                         &llm.APIError{},
		sseEvent(`{"error":{"message":"No."}}`):       &llm.APIError{},
	} {
		_, _, err := readAll(mustTarget("responses", "responses", "m"), strings.NewReader(body))
		if errors.As(want, new(*llm.APIError)) {
			wantAPIError(t, err)
		} else if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

// TestResponsesKeepsUnknownItems: whatever an item has, it goes back with it.
func TestResponsesKeepsUnknownItems(t *testing.T) {
	for _, item := range []string{
		`{"type":"message","id":null,"role":"assistant","content":"plain"}`,
		`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]}`,
		`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_audio","data":"AA"},{"type":"output_text","text":"x","later":[1]}],"later":{}}`,
		`{"type":"message","id":"m","role":"assistant","content":[]}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"a","mark":1},{"type":"summary_text","text":""}],"later":true}`,
		`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":""}],"content":[{"type":"reasoning_text","text":"b"}],"encrypted_content":null}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"in short"}],"content":[{"type":"reasoning_text","text":"b"},{"type":"reasoning_text","text":"c"}],"encrypted_content":"S"}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`,
		`{"type":"function_call","call_id":"c","name":"function_call","arguments":""}`,
		`{"type":"function_call","id":"c","call_id":"c","name":"f","arguments":{"x":1}}`,
		`{"type":"function_call","id":null,"call_id":"c","name":"f","arguments":"{\"half\":\"\\ud800\"}","namespace":"n"}`,
		`{"type":"custom_tool_call","id":"i","call_id":"c","name":"sh","input":""}`,
		`{"type":"web_search_call","id":"i","call_id":"","name":"web_search","arguments":"{}"}`,
		`{"type":"web_search_call","id":"i","action":null}`,
		`{"type":"computer_call","id":"i","call_id":"c","actions":[{"type":"click"}]}`,
		`{"type":"shell_call","id":"i","call_id":"c","action":{"commands":["ls"]},"environment":{"type":"container_reference"}}`,
		`{"type":"shell_call_output","id":"o","call_id":"c","output":[{"stdout":"x"}]}`,
		`{"type":"tool_search_output","id":"o","call_id":null,"tools":[]}`,
		`{"type":"later_output","id":"o","output":"text"}`,
		`{"type":"code_interpreter_call","id":"i","code":null,"outputs":null}`,
		`{"type":"image_generation_call","id":"i","result":"iVBO"}`,
		`{"type":"later_call","id":"i","arguments":{"deep":[{}]}}`,
		`{"type":"mcp_approval_request","id":"i","arguments":"{}","name":"f"}`,
		`{"type":"compaction","id":"i","encrypted_content":"S"}`,
	} {
		reply, _, err := readAll(mustTarget("responses", "responses", "m"), strings.NewReader(`{"output":[`+item+`,{"type":"compaction"}]}`))
		if err != nil {
			t.Fatal(item, err)
		}
		have := replayOf(mustTarget("responses", "responses", "m"), reply.Blocks)
		wantJSON(t, have, `[`+item+`,{"type":"compaction"}]`)
	}
}

// TestResponsesTellsServerToolsApart: a result that names no call belongs to the call of
// its kind, and tools that the client runs wait for a result.
func TestResponsesTellsServerToolsApart(t *testing.T) {
	reply, _, err := readAll(mustTarget("responses", "responses", "m"), strings.NewReader(`{"output":[
		{"type":"tool_search_call","id":"a","call_id":null,"execution":"server","arguments":{}},{"type":"tool_search_output","id":"b","call_id":null,"tools":[]},
		{"type":"tool_search_call","id":"c","call_id":"c1","execution":"client","arguments":{}},
		{"type":"shell_call","id":"d","call_id":"d1","action":{"commands":["ls"]}},
		{"type":"shell_call","id":"e","call_id":"e1","action":{"commands":["ls"]},"environment":{"type":"container_auto"}},{"type":"shell_call_output","id":"f","call_id":"e1","output":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var waiting []string
	for _, c := range reply.ToolCalls() {
		waiting = append(waiting, c.CallID+" "+c.Name)
	}
	if strings.Join(waiting, ", ") != "c1 tool_search_call, d1 shell" {
		t.Errorf("waiting: %v", waiting)
	}
	if a, b := reply.Blocks[1].(content.ToolResult), reply.Blocks[5].(content.ToolResult); a.CallID != "a" || b.CallID != "e1" || content.RoleOf(a) != content.RoleAssistant {
		t.Errorf("results of %q and %q", a.CallID, b.CallID)
	}
}

// TestResponsesChecksClientResults: the results of tools that the client runs are
// missed, those of the provider's are not.
func TestResponsesChecksClientResults(t *testing.T) {
	c, err := Open("openai-responses", Config{Model: "gpt-5"})
	if err != nil {
		t.Fatal(err)
	}
	turn := message(content.RoleAssistant,
		content.ToolCall{Wire: ownForm("shell_call", "i"), CallID: "a", Name: "shell", Arguments: "{}"},
		content.ToolCall{Wire: content.Form{Dialect: "responses", Type: "shell_call", Extra: []byte(`{"environment":{"type":"container_auto"}}`)}.Wire(), CallID: "b", Name: "shell", Arguments: "{}", Server: true},
		content.ToolResult{Wire: ownForm("shell_call_output", "o"), CallID: "b", Parts: []byte("[]"), Server: true})
	check := func(messages ...content.Message) []string {
		t.Helper()
		req := &llm.Request{Messages: messages}
		if req.Body, err = c.Encode(req); err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, p := range c.Check(req) {
			rules = append(rules, p.Rule+" "+p.CallID)
		}
		return rules
	}
	user := message(content.RoleUser, content.User("List."))
	if rules := check(user, turn, message(content.RoleTool, content.ToolResult{CallID: "a", Text: "x"})); rules != nil {
		t.Errorf("refused: %v", rules)
	}
	if rules := check(user, turn); len(rules) != 1 || rules[0] != "tool-result-missing a" {
		t.Errorf("without the result: %v", rules)
	}
}

// BenchmarkResponsesDecode reads a long answer, all of which comes four times.
func BenchmarkResponsesDecode(b *testing.B) {
	words := strings.Repeat("wörd ", 8)
	var text bytes.Buffer
	delta := rawjson.AppendString(nil, words)
	for range 4000 {
		text.WriteString(sseEvent(`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_0953eda47ee174120069333","output_index":0,"content_index":0,"delta":` + string(delta) + `,"logprobs":[],"obfuscation":"abcdef"}`))
	}
	all := string(rawjson.AppendString(nil, strings.Repeat(words, 4000)))
	item := `{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"text":` + all + `}]}`
	text.WriteString(sseEvent(`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":` + all + `}`))
	text.WriteString(sseEvent(`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`))
	text.WriteString(sseEvent(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + item + `]}}`))
	t := mustTarget("responses", "openai", "m")
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		reply, _, err := readAll(t, bytes.NewReader(text.Bytes()))
		if err != nil || len(reply.Text()) != 4000*len(words) {
			b.Fatal(err)
		}
	}
}
