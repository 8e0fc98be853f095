package providers

import (
	"slices"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

func TestCohereRequests(t *testing.T) {
	req := &llm.Request{Messages: longConversation(), Settings: llm.Settings{MaxOutputTokens: 100, ToolChoice: "look"}, Tools: []llm.Tool{{Name: "look"}}, Stream: true}
	wantJSON(t, encodedBody(t, "cohere", "command", req), `{
		"model": "command",
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}}, {"type": "text", "text": "moss"}]},
			{"role": "assistant", "content": [{"type": "thinking", "thinking": "Green."}, {"type": "text", "text": "Let me see."}], "tool_calls": [
				{"id": "call|1", "type": "function", "function": {"name": "look", "arguments": "{\"n\":1}"}},
				{"id": "call_2", "type": "function", "function": {"name": "ask", "arguments": "{\"arguments\":\"plain words\"}"}}]},
			{"role": "tool", "tool_call_id": "call|1", "content": "moss"},
			{"role": "tool", "tool_call_id": "call_2", "content": "yes\n[image]"},
			{"role": "user", "content": "And now?\n\n "}
		],
		"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
		"tool_choice": "REQUIRED", "max_tokens": 100, "stream": true
	}`)
}

func TestCohereSettings(t *testing.T) {
	for _, c := range []struct {
		r    llm.Reasoning
		want string
	}{
		{llm.Reasoning{}, ""},
		{llm.Reasoning{Effort: "none"}, `{"type":"disabled"}`},
		{llm.Reasoning{Effort: "low"}, `{"type":"enabled","token_budget":2048}`},
		{llm.Reasoning{Effort: "max"}, `{"type":"enabled"}`},
		{llm.Reasoning{Effort: "low", MaxTokens: 7}, `{"type":"enabled","token_budget":7}`},
	} {
		body := encodedBody(t, "cohere", "command", &llm.Request{Settings: llm.Settings{Reasoning: c.r, ToolChoice: "none", Extra: []byte(`{"seed":1}`)}, Tools: []llm.Tool{{Name: "a"}}})
		if have := body.Get("thinking"); string(have) != c.want || body.Get("tool_choice").Text() != "NONE" || body.Get("seed") == nil {
			t.Errorf("%+v: %s, want %s", c.r, body, c.want)
		}
	}
}

// TestCohereUnusualResponses: errors in words, contents that are a string, calls that
// break off at the output limit.
func TestCohereUnusualResponses(t *testing.T) {
	for _, c := range []struct{ body, blocks, err string }{
		{`{"message":"no such model"}`, "", "cohere: no such model"},
		{`{"ok":true}`, "", "not what the provider's format allows"},
		{`{"id":"a","message":{"role":"assistant","content":"Hi."},"finish_reason":"COMPLETE"}`, "text:Hi.", ""},
		{`{"type":"message-start","id":"a","delta":{"message":{}}}`, "", "the answer breaks off"},
		{sseEvent(`{"type":"message-start","id":"a","delta":{}}`) + sseEvent(`{"type":"error","message":"gone"}`), "", "cohere (error): gone"},
		{sseEvent(`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Look."}}}`) + sseEvent(`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","function":{"name":"f","arguments":"{\"a"}}}}}`) +
			sseEvent(`{"type":"message-end","delta":{"finish_reason":"MAX_TOKENS"}}`), `plan:Look. tool_call:{"a (cut)`, ""},
		{sseEvent(`{"type":"content-delta","index":3,"delta":{"message":{"content":{"thinking":"A"}}}}`) + sseEvent(`{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`), "reasoning:A", ""},
	} {
		checkUnusual(t, "cohere", c.body, c.blocks, c.err)
	}
}

func TestCohereReplaysResultParts(t *testing.T) {
	own := content.ToolResult{Wire: content.Form{Dialect: "cohere"}.Wire(), CallID: "a", Parts: []byte(`[{"type":"document","document":{"data":"x"}}]`)}
	foreign := content.ToolResult{CallID: "b", Parts: []byte(`{"n":1}`)}
	body := encodedBody(t, "cohere", "command", &llm.Request{Messages: []content.Message{message(content.RoleTool, own, foreign)}})
	wantJSON(t, body.Get("messages"), `[{"role":"tool","tool_call_id":"a","content":[{"type":"document","document":{"data":"x"}}]},{"role":"tool","tool_call_id":"b","content":"{\"n\":1}"}]`)
}

// TestCohereVersion1ResultsFindTheirCalls: version 1 has no call ids, and a result repeats its
// call. Some clients repeat the name alone.
func TestCohereVersion1ResultsFindTheirCalls(t *testing.T) {
	for name, parameters := range map[string][2]string{"whole": {`{"n":2}`, `{"n":1}`}, "name alone": {`{}`, `{}`}} {
		req, err := DecodeRequest("cohere", "", []byte(`{"message":"","chat_history":[{"role":"CHATBOT","tool_calls":[
			{"name":"look","parameters":{"n":1}},{"name":"see","parameters":{"n":1}},{"name":"see","parameters":{"n":2}}]}],"tool_results":[
			{"call":{"name":"see","parameters":`+parameters[0]+`},"outputs":[]},{"call":{"name":"see","parameters":`+parameters[1]+`},"outputs":[]},
			{"call":{"name":"look","parameters":`+parameters[1]+`},"outputs":[]},{"call":{"name":"none","parameters":{}},"outputs":[]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{"whole": {"call-0/2", "call-0/1", "call-0/0", ""}, "name alone": {"call-0/1", "call-0/2", "call-0/0", ""}}[name]
		var have []string
		for _, m := range req.Messages {
			for _, b := range m.Blocks {
				if r, ok := b.(content.ToolResult); ok {
					have = append(have, r.CallID)
				}
			}
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: the results are of %q, want %q", name, have, want)
		}
	}
}
