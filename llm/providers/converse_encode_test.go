package providers

import (
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// encodedBody is the body of a request to a provider's model.
func encodedBody(t *testing.T, provider, model string, req *llm.Request) rawjson.Value {
	t.Helper()
	tt := mustTarget("", provider, model)
	body, err := tt.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// longConversation has one of everything, the model's part of it from another dialect.
func longConversation() []content.Message {
	picture := content.Media{Of: content.KindImage, MediaType: "image/png", Data: "PNG"}
	paper := content.Media{Of: content.KindFile, MediaType: "text/plain", Name: "my_notes (1).txt", Data: "moss"}
	hidden := content.Reasoning{Wire: content.Form{Dialect: "responses", Seal: content.Seal{Type: content.Encrypted, Data: "RU5D", Minted: "responses/gpt"}}.Wire(), Text: "Green."}
	return []content.Message{
		message(content.RoleSystem, content.System("Be brief.")),
		message(content.NoRole, content.Note("for people")),
		message(content.RoleUser, content.User("What is it?"), picture, paper),
		message(content.RoleAssistant, hidden, content.Assistant("Let me see."),
			content.ToolCall{CallID: "call|1", Name: "look", Arguments: `{"n":1}`}, content.ToolCall{CallID: "call_2", Name: "ask", Arguments: "plain words"},
			content.ToolCall{CallID: "srv", Name: "search", Server: true}, content.ToolResult{CallID: "srv", Server: true, Text: "found"}, content.Native{JSON: `{"type":"later"}`}),
		message(content.RoleTool, content.ToolResult{CallID: "call_2", Parts: []byte(`[{"type":"text","text":"yes"},{"type":"image","source":{}}]`), IsError: true},
			content.ToolResult{CallID: "call|1", Text: "moss"}),
		message(content.RoleUser, content.User("And now?"), content.User(" ")),
	}
}

func TestConverseRequests(t *testing.T) {
	warm := 0.5
	req := &llm.Request{Messages: longConversation(), Settings: llm.Settings{MaxOutputTokens: 100, Temperature: &warm, ToolChoice: "look"}, Tools: []llm.Tool{
		{Name: "look", Description: "Look.", Schema: []byte(`{"type":"object","properties":{}}`)}, {Name: "now"}, {Native: []byte(`{"systemTool":{"name":"nova_grounding"}}`)},
	}, Stream: true}
	wantJSON(t, encodedBody(t, "bedrock", "amazon.nova-pro-v1:0", req), `{
		"messages": [
			{"role": "user", "content": [{"text": "What is it?"}, {"image": {"format": "png", "source": {"bytes": "UE5H"}}},
				{"document": {"format": "txt", "name": "my notes (1) txt", "source": {"bytes": "bW9zcw=="}}}]},
			{"role": "assistant", "content": [{"text": "Let me see."}, {"toolUse": {"toolUseId": "call_1_9695bc995e60283a", "name": "look", "input": {"n": 1}}},
				{"toolUse": {"toolUseId": "call_2", "name": "ask", "input": {"arguments": "plain words"}}}]},
			{"role": "user", "content": [{"toolResult": {"toolUseId": "call_1_9695bc995e60283a", "content": [{"text": "moss"}]}},
				{"toolResult": {"toolUseId": "call_2", "content": [{"text": "yes\n[image]"}], "status": "error"}}, {"text": "And now?"}]}
		],
		"system": [{"text": "Be brief."}],
		"inferenceConfig": {"maxTokens": 100, "temperature": 0.5},
		"toolConfig": {"tools": [{"toolSpec": {"name": "look", "description": "Look.", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
			{"toolSpec": {"name": "now", "inputSchema": {"json": {"type": "object"}}}}, {"systemTool": {"name": "nova_grounding"}}], "toolChoice": {"tool": {"name": "look"}}}
	}`)
}

func TestConverseSettings(t *testing.T) {
	ask := []content.Message{message(content.RoleUser, content.User("Hi"))}
	for _, c := range []struct {
		model    string
		settings llm.Settings
		want     string
	}{
		{"anthropic.claude-sonnet-4-5-v1:0", llm.Settings{}, `{}`},
		{"anthropic.claude-sonnet-4-5-v1:0", llm.Settings{Reasoning: llm.Reasoning{Effort: "low"}}, `{"inferenceConfig":{"maxTokens":10240},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2048}}}`},
		{"anthropic.claude-sonnet-4-5-v1:0", llm.Settings{Reasoning: llm.Reasoning{Effort: "none"}}, `{"additionalModelRequestFields":{"thinking":{"type":"disabled"}}}`},
		{"anthropic.claude-sonnet-4-5-v1:0", llm.Settings{MaxOutputTokens: 9000, Reasoning: llm.Reasoning{MaxTokens: 2000}}, `{"inferenceConfig":{"maxTokens":9000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}}}`},
		{"us.amazon.nova-2-lite-v1:0", llm.Settings{Reasoning: llm.Reasoning{Effort: "max"}}, `{"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}}`},
		{"us.amazon.nova-2-lite-v1:0", llm.Settings{Reasoning: llm.Reasoning{Effort: "none"}}, `{"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}}}`},
		{"openai.gpt-oss-120b", llm.Settings{Reasoning: llm.Reasoning{Effort: "low"}}, `{"additionalModelRequestFields":{"reasoning_effort":"low"}}`},
		{"m", llm.Settings{Extra: []byte(`{"guardrailConfig":{"guardrailIdentifier":"g"}}`)}, `{"guardrailConfig":{"guardrailIdentifier":"g"}}`},
	} {
		body := encodedBody(t, "bedrock", c.model, &llm.Request{Messages: ask, Settings: c.settings})
		if have := rawjson.Without(body, "messages"); !rawjson.Equal(have, rawjson.Value(c.want)) {
			t.Errorf("%s %+v: %s, want %s", c.model, c.settings, have, c.want)
		}
	}
	tools := []llm.Tool{{Name: "look"}}
	for choice, want := range map[string]string{"": "", "auto": `{"auto":{}}`, "required": `{"any":{}}`} {
		body := encodedBody(t, "bedrock", "m", &llm.Request{Messages: ask, Tools: tools, Settings: llm.Settings{ToolChoice: choice}})
		if have := string(body.Get("toolConfig", "toolChoice")); have != want {
			t.Errorf("choice %q: %s, want %s", choice, have, want)
		}
	}
	none := &llm.Request{Messages: ask, Tools: tools, Settings: llm.Settings{ToolChoice: "none"}}
	if have := encodedBody(t, "bedrock", "m", none).Get("toolConfig"); have != nil {
		t.Errorf("no tool may be used, but these are there: %s", have)
	}
	if none.Messages = longConversation(); encodedBody(t, "bedrock", "m", none).Get("toolConfig", "tools").At(0) == nil {
		t.Error("one tool was called, and none is told of")
	}
}

// TestConverseEncodesForeignReasoning: a seal goes to the family of its model; a reasoning block
// that nobody sealed only between tags.
func TestConverseEncodesForeignReasoning(t *testing.T) {
	claude := content.Reasoning{Wire: content.Form{Dialect: "converse"}.Wire(), Text: "Hm."}
	seal := content.Seal{Type: content.Signature, Data: "U0VBTA==", Minted: "converse/us.anthropic.claude-x"}
	claude.SetSeal(seal)
	redacted := claude
	redacted.Text, seal.Type = "", content.Redacted
	redacted.SetSeal(seal)
	deepseek := content.Reasoning{Wire: content.Form{Dialect: "converse"}.Wire(), Text: "So."}
	half := claude
	half.SetIncomplete(true)
	other := claude
	other.Wire = content.Form{Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: seal.Data, Minted: "messages/claude-x"}}.Wire()
	blocks := []content.Block{claude, redacted, deepseek, half, other, content.Assistant("Done.")}
	for model, want := range map[string]string{
		"eu.anthropic.claude-y-v2:0": `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"U0VBTA=="}}},{"reasoningContent":{"redactedContent":"U0VBTA=="}},
			{"text":"<think>\nSo.\n</think>\n"},{"text":"Done."}]}`,
		"deepseek.r1-v1:0": `{"role":"assistant","content":[{"text":"<think>\nSo.\n</think>\n"},{"text":"Done."}]}`,
	} {
		tt := mustTarget("converse", "bedrock", model)
		wantJSON(t, tt.Replay(blocks), want)
	}
}
