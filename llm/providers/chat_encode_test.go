package providers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// chatConversation is a talk with a bit of everything.
func chatConversation() *llm.Request {
	heat := 0.25
	chat := content.Form{Dialect: "chat"}.Wire()
	return &llm.Request{
		Messages: []content.Message{
			{Role: content.RoleSystem, Blocks: []content.Block{content.System("Be brief."), content.Text{Of: content.KindSummary, Text: "Before: much."}}},
			{Role: content.RoleUser, Blocks: []content.Block{content.User("What is this?"), content.Note("secret"), content.Media{Of: content.KindImage, MediaType: "image/png", Data: "\x89PNG"}}},
			{Role: content.RoleAssistant, Blocks: []content.Block{
				content.Reasoning{Wire: chat, Format: content.FormatParsed, Source: "reasoning_content", Text: "Look."},
				content.ToolCall{Wire: content.Form{Dialect: "chat", Type: "function"}.Wire(), CallID: "a", Name: "look", Arguments: `{"n": 1}`},
				content.ToolCall{CallID: "b", Name: "look"},
			}},
			{Role: content.RoleTool, Blocks: []content.Block{
				content.ToolResult{CallID: "b", Text: "second"},
				content.ToolResult{CallID: "a", Parts: []byte(`[{"type":"text","text":"first"},{"type":"image","source":{}}]`)},
			}},
			{Role: content.RoleUser, Blocks: []content.Block{content.User("And"), content.User("now?")}},
		},
		Tools: []llm.Tool{
			{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			{Name: "stop"},
			{Native: []byte(`{"type":"web_search"}`)},
		},
		Settings: llm.Settings{Model: "m-1", MaxOutputTokens: 100, Temperature: &heat, ToolChoice: "look", Reasoning: llm.Reasoning{Effort: "low"}, Extra: []byte(`{"seed":7,"temperature":0.5}`)},
		Stream:   true,
	}
}

func TestChatRequest(t *testing.T) {
	const want = `{"model":"m-1","messages":[{"role":"system","content":"Be brief."},{"role":"system","content":"Before: much."},` +
		`{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]},` +
		`{"role":"assistant","reasoning_content":"Look.","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"n\": 1}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":"first\n[image]"},{"role":"tool","tool_call_id":"b","content":"second"},{"role":"user","content":"And\n\nnow?"}],` +
		`"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}},{"type":"function","function":{"name":"stop","parameters":{"type":"object","properties":{}}}},{"type":"web_search"}],` +
		`"tool_choice":{"type":"function","function":{"name":"look"}},"max_tokens":100,"reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true},"seed":7,"temperature":0.5}`
	for range 2 {
		body, err := mustTarget("chat", "deepseek", "other").Encode(chatConversation())
		if err != nil {
			t.Fatal(err)
		}
		if string(body) != want {
			t.Errorf("have\n%s\nwant\n%s", body, want)
		}
	}
}

// TestChatRequestOfEachServer: where servers want something else.
func TestChatRequestOfEachServer(t *testing.T) {
	for _, c := range []struct {
		provider    string
		change      func(r *llm.Request)
		has, hasNot []string
	}{
		{provider: "openai", has: []string{`"max_completion_tokens":100`, `"reasoning_effort":"low"`}, hasNot: []string{`"max_tokens"`, "Look.\"", "reasoning_content"}},
		{provider: "mistral", has: []string{`"max_tokens":100`, `"stream":true`}, hasNot: []string{"stream_options", "reasoning_content"}},
		{provider: "openrouter", has: []string{`"reasoning":{"effort":"low"}`, `"reasoning_content":"Look."`}, hasNot: []string{"reasoning_effort"}},
		{
			provider: "openrouter", change: func(r *llm.Request) { r.Settings.Reasoning.MaxTokens = 9 },
			has: []string{`"reasoning":{"max_tokens":9}`}, hasNot: []string{"effort"},
		},
		{
			provider: "alibaba", change: func(r *llm.Request) { r.Settings.Reasoning = llm.Reasoning{MaxTokens: 9} },
			has: []string{`"thinking_budget":9`}, hasNot: []string{"effort"},
		},
		{
			provider: "vllm", change: func(r *llm.Request) { r.Settings, r.Stream, r.Tools = llm.Settings{ToolChoice: "auto"}, false, nil },
			has: []string{`"model":"m"`}, hasNot: []string{"stream", "max_", "temperature", "reasoning_effort", "tool_choice", `"tools"`},
		},
		{
			provider: "vllm", change: func(r *llm.Request) { r.Settings.ToolChoice = "required" },
			has: []string{`"tool_choice":"required"`},
		},
	} {
		r := chatConversation()
		if c.change != nil {
			c.change(r)
		}
		body, err := mustTarget("chat", c.provider, "m").Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.has {
			if !bytes.Contains(body, []byte(s)) {
				t.Errorf("%s: no %s in\n%s", c.provider, s, body)
			}
		}
		for _, s := range c.hasNot {
			if bytes.Contains(body, []byte(s)) {
				t.Errorf("%s: %s in\n%s", c.provider, s, body)
			}
		}
	}
	r := chatConversation()
	r.Settings.Extra = []byte(`[1]`)
	if _, err := mustTarget("chat", "vllm", "m").Encode(r); err == nil || !strings.Contains(err.Error(), "request.extra") {
		t.Errorf("an extra that is no object: %v", err)
	}
}

// TestChatEncodesEachMessage: each message by itself.
func TestChatEncodesEachMessage(t *testing.T) {
	chat := content.Form{Dialect: "chat"}.Wire()
	user := func(b ...content.Block) content.Message { return content.Message{Role: content.RoleUser, Blocks: b} }
	said := func(b ...content.Block) content.Message {
		return content.Message{Role: content.RoleAssistant, Blocks: b}
	}
	legacy := content.ToolCall{Wire: content.Form{Dialect: "chat", Type: "function_call"}.Wire(), CallID: "r/0", Name: "f", Arguments: "{}"}
	for _, c := range []struct {
		name     string
		messages []content.Message
		want     string
	}{
		{"a file", []content.Message{user(content.Media{Of: content.KindFile, MediaType: "application/pdf", Name: "a.pdf", Data: "%PDF"})}, `[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}]}]`},
		{"a sound", []content.Message{user(content.Media{Of: content.KindFile, MediaType: "audio/mpeg", Data: "x"})}, `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"eA==","format":"mp3"}}]}]`},
		{"an image elsewhere", []content.Message{user(content.Media{Wire: content.Form{Dialect: "chat", Extra: []byte(`{"image_url":{"detail":"low"}}`)}.Wire(), Of: content.KindImage, URL: "https://x.test/a.png"})}, `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"low"}}]}]`},
		{"an image that is nowhere", []content.Message{user(content.Media{Of: content.KindImage})}, `[]`},
		{"a part that is not known", []content.Message{user(content.Native{Wire: content.Form{Dialect: "chat", Type: "content:video"}.Wire(), JSON: `{"type":"video"}`}, content.Native{Wire: content.Form{Dialect: "messages"}.Wire(), JSON: `{}`})}, `[{"role":"user","content":[{"type":"video"}]}]`},
		{"a user by name", []content.Message{user(content.Text{Wire: content.Form{Dialect: "chat", Extra: []byte(`{"$message":{"name":"Ann"}}`)}.Wire(), Of: content.KindUser, Text: "Hi"})}, `[{"role":"user","content":"Hi","name":"Ann"}]`},
		{"results among words", []content.Message{user(content.User("so"), content.ToolResult{CallID: "a", Text: "r"})}, `[{"role":"tool","tool_call_id":"a","content":"r"},{"role":"user","content":"so"}]`},
		{"a note", []content.Message{{Role: content.NoRole, Blocks: []content.Block{content.Note("x")}}}, `[]`},
		{"parts as they came", []content.Message{{Role: content.RoleTool, Blocks: []content.Block{content.ToolResult{Wire: chat, CallID: "a", Parts: []byte(`[{"type":"image_url"}]`)}}}}, `[{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}]`},
		{"parts that are no list", []content.Message{{Role: content.RoleTool, Blocks: []content.Block{content.ToolResult{CallID: "a", Parts: []byte(`{"x":1}`)}}}}, `[{"role":"tool","tool_call_id":"a","content":"{\"x\":1}"}]`},
		{"a call from before there were several", []content.Message{said(legacy), {Role: content.RoleTool, Blocks: []content.Block{content.ToolResult{CallID: "r/0", Text: "r"}}}}, `[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}]`},
		{"a call of a custom tool of another", []content.Message{said(content.ToolCall{Wire: content.Form{Dialect: "responses", Type: "custom_tool_call"}.Wire(), CallID: "a", Name: "sh", Arguments: "ls"})}, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"sh","arguments":"{\"input\":\"ls\"}"}}]}]`},
		{"what another server ran", []content.Message{said(content.ToolCall{Wire: content.Form{Dialect: "messages"}.Wire(), Server: true}, content.Assistant("Hi"))}, `[{"role":"assistant","content":"Hi"}]`},
		{"only a thought", []content.Message{said(content.Reasoning{Text: "Hm."})}, `[{"role":"assistant","content":"","reasoning_content":"Hm."}]`},
		{"nothing", []content.Message{said(content.Note("x"))}, `[]`},
		{"what is no Unicode", []content.Message{user(content.User("a\xffb\xed\xa0\x80")), said(content.Native{Wire: content.Form{Dialect: "chat", Type: "message"}.Wire(), JSON: `{"x":"\ud83d\ude00\udc00"}`})}, "[{\"role\":\"user\",\"content\":\"a\uFFFDb\uFFFD\"},{\"role\":\"assistant\",\"content\":\"\",\"x\":\"😀\uFFFD\"}]"},
	} {
		body, err := mustTarget("chat", "nobody-knows", "").Encode(&llm.Request{Messages: c.messages})
		if err != nil {
			t.Error(c.name, err)
		}
		if have := body.Get("messages"); string(have) != c.want {
			t.Errorf("%s: have\n%s\nwant\n%s", c.name, have, c.want)
		}
	}
}
