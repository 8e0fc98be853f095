package providers

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// checkUnusual reads a body and holds its blocks, in words, and the beginning of its
// error against what is wanted.
func checkUnusual(t *testing.T, dialect, body, blocks, failed string) {
	t.Helper()
	r := recording{API: dialect, Provider: dialect, Model: "m"}
	reply, _, err := r.read(strings.NewReader(body))
	var words []string
	for _, b := range reply.Blocks {
		w := kindName(b) + ":" + b.String()
		if b.Form().Incomplete {
			w += " (cut)"
		}
		words = append(words, w)
	}
	if have := strings.Join(words, " "); have != blocks {
		t.Errorf("%s\nsays %q, want %q", body, have, blocks)
	}
	if (err == nil) != (failed == "") || err != nil && !strings.HasPrefix(err.Error(), failed) {
		t.Errorf("%s\nerror %v, want %q", body, err, failed)
	}
}

func TestOllamaRequests(t *testing.T) {
	req := &llm.Request{Messages: longConversation(), Settings: llm.Settings{MaxOutputTokens: 100, ToolChoice: "look"}, Tools: []llm.Tool{{Name: "look"}}}
	wantJSON(t, encodedBody(t, "ollama", "qwen3", req), `{
		"model": "qwen3",
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "content": "What is it?\n\nmoss", "images": ["UE5H"]},
			{"role": "assistant", "content": "Let me see.", "thinking": "Green.", "tool_calls": [
				{"function": {"name": "look", "arguments": {"n": 1}}}, {"function": {"name": "ask", "arguments": {"arguments": "plain words"}}}]},
			{"role": "tool", "content": "moss", "tool_name": "look"},
			{"role": "tool", "content": "yes\n[image]", "tool_name": "ask"},
			{"role": "user", "content": "And now?\n\n "}
		],
		"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
		"options": {"num_predict": 100}, "stream": false
	}`)
}

func TestOllamaSettings(t *testing.T) {
	for _, c := range []struct {
		model string
		r     llm.Reasoning
		want  string
	}{
		{"qwen3", llm.Reasoning{}, ""},
		{"qwen3", llm.Reasoning{Effort: "none"}, "false"},
		{"qwen3", llm.Reasoning{Effort: "high"}, "true"},
		{"qwen3", llm.Reasoning{MaxTokens: 5}, "true"},
		{"gpt-oss:20b", llm.Reasoning{Effort: "xhigh"}, `"high"`},
	} {
		body := encodedBody(t, "ollama", c.model, &llm.Request{Stream: true, Settings: llm.Settings{Reasoning: c.r, ToolChoice: "none", Extra: []byte(`{"keep_alive":"1m"}`)}, Tools: []llm.Tool{{Name: "a"}}})
		if have := body.Get("think"); string(have) != c.want || body.Get("tools") != nil || !body.Get("stream").Bool() || body.Get("keep_alive") == nil {
			t.Errorf("%s %+v: %s, want %s", c.model, c.r, body, c.want)
		}
	}
}

// TestOllamaUnusualResponses: errors, lines that stop, calls whose arguments are a
// string, reasoning between tags with nothing in them.
func TestOllamaUnusualResponses(t *testing.T) {
	line := func(message string) string { return `{"message":` + message + `,"done":false}` + "\n" }
	done := `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
	for _, c := range []struct{ body, blocks, err string }{
		{`{"error":"model \"x\" not found"}`, "", `ollama: model "x" not found`},
		{`{"ok":true}`, "", "not what the provider's format allows"},
		{line(`{"content":"Hi"}`), "text:Hi (cut)", "the answer breaks off"},
		{line(`{"thinking":"A"}`) + line(`{"content":"Hi"}`), "reasoning:A text:Hi (cut)", "the answer breaks off"},
		{line(`{"content":"<think>\n\n</think>\n\nHi"}`) + done, "text:Hi", ""},
		{line(`{"content":"<think></think>"}`) + done, "text:<think></think>", ""},
		{line(`{"content":"Use <think> tags."}`) + line(`{"content":"</think>"}`) + done, "text:Use <think> tags.</think>", ""},
		{line(`{"content":"","tool_calls":[{"function":{"name":"f","arguments":"words"}}]}`) + done, "tool_call:words", ""},
		{line(`{"content":"a"}`) + line(`{"thinking":"b"}`) + line(`{"content":"c"}`) + done, "text:a reasoning:b text:c", ""},
		{done, "", ""},
	} {
		checkUnusual(t, "ollama", c.body, c.blocks, c.err)
	}
	back := replayOf(mustTarget("ollama", "", ""), []content.Block{content.ToolCall{Wire: content.Form{Dialect: "ollama", Type: "string"}.Wire(), Name: "f", Arguments: "words"}})
	wantJSON(t, back, `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"words"}}]}`)
	if back := replayOf(mustTarget("ollama", "", ""), nil); back != nil {
		t.Errorf("%s", back)
	}
}

// TestOllamaReplaysCallIDs: newer servers name their calls.
func TestOllamaReplaysCallIDs(t *testing.T) {
	call := content.ToolCall{Wire: content.Form{Dialect: "ollama", ID: "call_1"}.Wire(), CallID: "call_1", Name: "f", Arguments: "{}"}
	body := encodedBody(t, "ollama", "m", &llm.Request{Messages: []content.Message{message(content.RoleAssistant, call), message(content.RoleTool, content.ToolResult{CallID: "call_1", Text: "x"})}})
	wantJSON(t, body.Get("messages"), `[{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"x","tool_name":"f","tool_call_id":"call_1"}]`)
}

// TestOllamaLoadRequestsHaveNoMessages: a request without a prompt and without messages loads or
// unloads the model.
func TestOllamaLoadRequestsHaveNoMessages(t *testing.T) {
	for _, body := range []string{`{"model":"m"}`, `{"model":"m","keep_alive":0}`, `{"model":"m","prompt":""}`, `{"model":"m","messages":[]}`} {
		req, err := DecodeRequest("ollama", "", []byte(body))
		if err != nil || req.Settings.Model != "m" || len(req.Messages) > 0 {
			t.Errorf("%s: %+v, %v", body, req, err)
		}
	}
	for _, body := range []string{`{"model":"m","prompt":1}`, `{"model":"m","messages":{}}`} {
		if _, err := DecodeRequest("ollama", "", []byte(body)); err == nil {
			t.Errorf("%s is decoded", body)
		}
	}
}
