package providers

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// messagesBody encodes a request to a Claude.
func messagesBody(t *testing.T, provider string, req *llm.Request) rawjson.Value {
	t.Helper()
	req.Settings.Model = cmp.Or(req.Settings.Model, "claude-sonnet-4-5")
	return encodedTwice(t, provider, "messages", req)
}

// message is a message.
func message(role content.Role, blocks ...content.Block) content.Message {
	return content.Message{Role: role, Blocks: blocks}
}

func wantJSON(t *testing.T, have rawjson.Value, want string) {
	t.Helper()
	v, err := rawjson.Parse([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if !rawjson.Equal(have, v) {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

// sealed is a reasoning block as a Claude gives it.
func sealed(text, signature, minted string) content.Reasoning {
	return content.Reasoning{
		Wire: content.Form{Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: signature, Minted: minted}}.Wire(),
		Text: text, Format: content.FormatAnthropic,
	}
}

func TestMessagesEncodesAToolTurn(t *testing.T) {
	const claude = "messages/claude-sonnet-4-5"
	redacted := sealed("", "opaque", claude)
	redacted.SetSeal(content.Seal{Type: content.Redacted, Data: "opaque", Minted: claude})
	temperature := 0.5
	body := messagesBody(t, "anthropic", &llm.Request{
		Messages: []content.Message{
			message(content.RoleSystem, content.System("Be brief."), content.System(" ")),
			message(content.RoleUser, content.User("Weather in two towns?")),
			message(content.RoleAssistant,
				sealed("Look both up.", "c2VhbA==", claude), redacted, sealed("", "ZW1wdHk=", claude), content.Assistant("  \n"),
				content.ToolCall{CallID: "a", Name: "weather", Arguments: `{"town": "Rome"}`}, content.ToolCall{CallID: "b", Name: "weather"}),
			message(content.RoleUser, content.User("Quick!")),
			message(content.RoleTool, content.ToolResult{CallID: "b", Text: "no town", IsError: true}, content.ToolResult{CallID: "a", Text: "40 C"}),
			message(content.RoleSystem, content.System("In Celsius.")),
			message(content.RoleUser, content.Note("never sent"), content.User("")),
		},
		Tools:    []llm.Tool{{Name: "weather", Description: "of a town", Schema: []byte(`{"type":"object"}`)}, {Native: []byte(`{"type":"web_search_20250305","name":"web_search"}`)}},
		Settings: llm.Settings{ToolChoice: "required", Temperature: &temperature, Extra: []byte(`{"metadata":{"user_id":"u"},"temperature":1}`)},
		Stream:   true,
	})
	wantJSON(t, body, `{
		"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true,"temperature":1,"metadata":{"user_id":"u"},
		"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"In Celsius."}],
		"tools":[{"name":"weather","description":"of a town","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
		"tool_choice":{"type":"any"},
		"messages":[
			{"role":"user","content":[{"type":"text","text":"Weather in two towns?"}]},
			{"role":"assistant","content":[
				{"type":"thinking","thinking":"Look both up.","signature":"c2VhbA=="},
				{"type":"redacted_thinking","data":"opaque"},
				{"type":"thinking","thinking":"","signature":"ZW1wdHk="},
				{"type":"tool_use","id":"a","name":"weather","input":{"town":"Rome"}},
				{"type":"tool_use","id":"b","name":"weather","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"a","content":"40 C"},
				{"type":"tool_result","tool_use_id":"b","content":"no town","is_error":true},
				{"type":"text","text":"Quick!"}]}]}`)
}

// TestMessagesSendsNoForeignReasoning: what another dialect or family sealed is
// refused by the API, and so is a reasoning block without a seal.
func TestMessagesSendsNoForeignReasoning(t *testing.T) {
	thoughts := []content.Block{
		sealed("gemini's", "S1", "gemini/gemini-3-pro"),
		sealed("glm's", "S2", "messages/glm-5"),
		content.Reasoning{Text: "plain", Format: content.FormatParsed},
		content.Reasoning{Wire: content.Form{Dialect: "messages"}.Wire(), Text: "not sealed"},
		content.Reasoning{Wire: content.Form{Dialect: "messages", Incomplete: true}.Wire(), Text: "cut"},
		content.Native{Wire: content.Form{Dialect: "responses", Type: "x"}.Wire(), JSON: `{"type":"x"}`},
		content.ToolCall{Wire: content.Form{Dialect: "responses"}.Wire(), CallID: "ws_1", Name: "web_search", Server: true},
		content.ToolResult{Wire: content.Form{Dialect: "gemini"}.Wire(), CallID: "ws_1", Text: "found", Server: true},
	}
	req := func() *llm.Request {
		return &llm.Request{Messages: []content.Message{
			message(content.RoleUser, content.User("hi")), message(content.RoleAssistant, append(thoughts, content.Assistant("ho"))...),
		}}
	}
	wantJSON(t, messagesBody(t, "anthropic", req()).Get("messages"),
		`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"ho"}]}]`)

	// A server that only speaks the format may not seal at all, and wants its own.
	wantJSON(t, messagesBody(t, "my-server", req()).Get("messages").At(1),
		`{"role":"assistant","content":[{"type":"thinking","thinking":"not sealed"},{"type":"text","text":"ho"}]}`)
}

func TestMessagesEncodesUnsendableText(t *testing.T) {
	body := messagesBody(t, "anthropic", &llm.Request{Messages: []content.Message{
		message(content.RoleUser, content.User("a\xffb\xed\xa0\x80c"),
			content.Media{Of: content.KindImage, Data: "\x89PNG\r\n\x1a\n"},
			content.Media{Of: content.KindImage, URL: "data:image/webp;base64,AAAA"},
			content.Media{Of: content.KindImage, URL: "https://example.com/a.png"},
			content.Media{Of: content.KindFile, MediaType: "application/pdf", Name: "p", Data: "%PDF"},
			content.Media{Of: content.KindFile, MediaType: "text/x-go", Name: "m.go", Data: "package m"},
			content.Media{Of: content.KindFile, Name: "gone"}),
		message(content.RoleAssistant, content.ToolCall{CallID: "functions.f:0", Name: "f", Arguments: `{"half":"\ud800","n":12345678901234567890123}`},
			content.ToolCall{CallID: "functions_f_0", Name: "g", Arguments: "SELECT 1"}),
		message(content.RoleTool, content.ToolResult{CallID: "functions.f:0", IsError: true},
			content.ToolResult{CallID: "functions_f_0", Parts: []byte(`[{"type":"input_text","text":"x"}]`)}),
	}})
	if bytes.Contains(body, []byte(`\ud800`)) || bytes.ContainsRune(body, 0xD800) {
		t.Errorf("half a surrogate pair is sent: %s", body)
	}
	messages := body.Get("messages")
	wantJSON(t, messages.At(0).Get("content"), `[{"type":"text","text":"a`+"\uFFFD"+`b`+"\uFFFD"+`c"},
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
		{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"AAAA"}},
		{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},
		{"type":"document","title":"p","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},
		{"type":"document","title":"m.go","source":{"type":"text","media_type":"text/plain","data":"package m"}}]`)
	calls, results := messages.At(1).Get("content"), messages.At(2).Get("content")
	wantJSON(t, calls.At(0).Get("input"), `{"half":"`+"\uFFFD"+`","n":12345678901234567890123}`)
	wantJSON(t, calls.At(1), `{"type":"tool_use","id":"functions_f_0","name":"g","input":{"arguments":"SELECT 1"}}`)
	id := calls.At(0).Get("id").Text()
	if strings.ContainsAny(id, ".:") || id == "functions_f_0" || results.At(0).Get("tool_use_id").Text() != id {
		t.Errorf("the ids are %s and %s", calls, results)
	}
	wantJSON(t, results.At(0).Get("content"), `"error"`)
	wantJSON(t, results.At(1).Get("content"), `"[{\"type\":\"input_text\",\"text\":\"x\"}]"`)
}

// TestMessagesThinkingSettings: what nobody said is not sent.
func TestMessagesThinkingSettings(t *testing.T) {
	for name, c := range map[string]struct {
		model    string
		settings llm.Settings
		want     string
	}{
		"unsaid":                {"claude-opus-5", llm.Settings{}, `{"max_tokens":8192}`},
		"only a summary":        {"claude-opus-5", llm.Settings{Reasoning: llm.Reasoning{Summary: "auto"}}, `{"max_tokens":8192}`},
		"a limit":               {"claude-opus-5", llm.Settings{MaxOutputTokens: 100}, `{"max_tokens":100}`},
		"a budget":              {"claude-opus-5", llm.Settings{Reasoning: llm.Reasoning{MaxTokens: 4000}}, `{"max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":4000}}`},
		"a budget over it":      {"claude-opus-4-1", llm.Settings{Reasoning: llm.Reasoning{MaxTokens: 10000}}, `{"max_tokens":18192,"thinking":{"type":"enabled","budget_tokens":10000}}`},
		"a budget over a limit": {"claude-opus-4-1", llm.Settings{MaxOutputTokens: 1000, Reasoning: llm.Reasoning{MaxTokens: 2000}}, `{"max_tokens":3000,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		"an effort":             {"claude-opus-4-8", llm.Settings{Reasoning: llm.Reasoning{Effort: "high"}}, `{"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}`},
		"an effort, not shown":  {"us.anthropic.claude-opus-5-v1:0", llm.Settings{Reasoning: llm.Reasoning{Effort: "minimal", Hidden: true}}, `{"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		"an effort, old":        {"claude-sonnet-4-5-20250929", llm.Settings{Reasoning: llm.Reasoning{Effort: "high"}}, `{"max_tokens":24576,"thinking":{"type":"enabled","budget_tokens":16384}}`},
		"an effort, older":      {"claude-3-7-sonnet-20250219", llm.Settings{MaxOutputTokens: 4000, Reasoning: llm.Reasoning{Effort: "high"}}, `{"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		"an effort, no room":    {"claude-sonnet-4-20250514", llm.Settings{MaxOutputTokens: 500, Reasoning: llm.Reasoning{Effort: "high"}}, `{"max_tokens":500}`},
		"an effort, not Claude": {"glm-5", llm.Settings{Reasoning: llm.Reasoning{Effort: "low"}}, `{"max_tokens":10240,"thinking":{"type":"enabled","budget_tokens":2048}}`},
		"none":                  {"claude-opus-4-8", llm.Settings{Reasoning: llm.Reasoning{Effort: "none"}}, `{"max_tokens":8192,"thinking":{"type":"disabled"}}`},
	} {
		c.settings.Model = c.model
		body := messagesBody(t, "anthropic", &llm.Request{Settings: c.settings})
		t.Run(name, func(t *testing.T) { wantJSON(t, rawjson.Without(body, "model", "messages"), c.want) })
	}
}

// TestMessagesSendsTheContainer: code that waits for a tool's result can only
// go on where it waits.
func TestMessagesSendsTheContainer(t *testing.T) {
	const stream = `data: {"type":"message_start","message":{"id":"m","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"roll","input":{"p":1},"caller":{"type":"code_execution_20250825","tool_id":"s1"}}],"container":{"id":"c1","expires_at":"2026"},"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

`
	reply, err := llm.Collect(Decode("messages", "", "", strings.NewReader(stream), llm.FramingSSE), nil)
	if err != nil || len(reply.Blocks) != 2 {
		t.Fatalf("%+v, %v", reply, err)
	}
	ask := func(last content.Message) rawjson.Value {
		return messagesBody(t, "anthropic", &llm.Request{Messages: []content.Message{
			message(content.RoleUser, content.User("Roll.")), message(content.RoleAssistant, reply.Blocks...), last,
		}})
	}
	open := ask(message(content.RoleTool, content.ToolResult{CallID: "t1", Text: "6"}))
	if open.Get("container").Text() != "c1" {
		t.Errorf("no container in %s", open)
	}
	wantJSON(t, open.Get("messages").At(1).Get("content"), `[{"type":"tool_use","id":"t1","name":"roll","input":{"p":1},"caller":{"type":"code_execution_20250825","tool_id":"s1"}}]`)
	if closed := ask(message(content.RoleUser, content.User("Never mind."))); closed.Get("container") != nil {
		t.Errorf("an old container in %s", closed)
	}
}

func TestMessagesRefusesAnExtraThatIsNoObject(t *testing.T) {
	c, err := Open("anthropic", Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []*llm.Request{
		{Settings: llm.Settings{Extra: []byte(`[1]`)}},
		{Settings: llm.Settings{Extra: []byte(`{`)}},
		{Tools: []llm.Tool{{Name: "f", Schema: []byte("{")}}},
	} {
		if body, err := c.Encode(req); err == nil {
			t.Errorf("%+v gave %s", req, body)
		}
	}
}

// TestMessagesSendsServerCallsWithTheirResults: an edited result is the provider's
// no more, and its call alone would be refused.
func TestMessagesSendsServerCallsWithTheirResults(t *testing.T) {
	own := content.Form{Dialect: "messages", Type: "server_tool_use"}.Wire()
	found := content.Form{Dialect: "messages", Type: "web_search_tool_result", Role: content.RoleAssistant}.Wire()
	call := content.ToolCall{Wire: own, CallID: "s1", Name: "web_search", Arguments: `{"query":"x"}`, Server: true}
	result := content.ToolResult{Wire: found, CallID: "s1", Parts: []byte(`[{"type":"web_search_result","url":"u"}]`), Server: true}
	ask := func(blocks ...content.Block) rawjson.Value {
		return messagesBody(t, "anthropic", &llm.Request{Messages: []content.Message{
			message(content.RoleUser, content.User("x?")), message(content.RoleAssistant, append(blocks, content.Assistant("x."))...),
		}}).Get("messages").At(1).Get("content")
	}
	wantJSON(t, ask(call, result), `[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}},
		{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"u"}]},{"type":"text","text":"x."}]`)
	edited, err := content.WithText(result, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, ask(call, edited), `[{"type":"text","text":"x."}]`)
}

func TestMessagesToolChoices(t *testing.T) {
	tools := []llm.Tool{{Name: "f"}}
	for choice, want := range map[string]string{
		"auto": `{"type":"auto"}`, "none": `{"type":"none"}`, "required": `{"type":"any"}`, "f": `{"type":"tool","name":"f"}`,
	} {
		wantJSON(t, messagesBody(t, "anthropic", &llm.Request{Tools: tools, Settings: llm.Settings{ToolChoice: choice}}).Get("tool_choice"), want)
	}
	body := messagesBody(t, "anthropic", &llm.Request{Tools: tools})
	if body.Get("tool_choice") != nil {
		t.Errorf("a choice that nobody made: %s", body)
	}
	wantJSON(t, body.Get("tools"), `[{"name":"f","input_schema":{"type":"object"}}]`)
}

// TestMessagesEncodesToolResults: content blocks of the format go as they are,
// whoever made them; all else is text.
func TestMessagesEncodesToolResults(t *testing.T) {
	for parts, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"u"}}]`: `[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"u"}}]`,
		`[{"type":"image","image_url":"u"}]`:                                              `"[{\"type\":\"image\",\"image_url\":\"u\"}]"`,
		`[{"type":"text"}]`:                                                               `"[{\"type\":\"text\"}]"`,
		`{"rows":3}`:                                                                      `"{\"rows\":3}"`,
		`not JSON`:                                                                        `"not JSON"`,
	} {
		body := messagesBody(t, "anthropic", &llm.Request{Messages: []content.Message{
			message(content.RoleAssistant, content.ToolCall{CallID: "c", Name: "f"}),
			message(content.RoleTool, content.ToolResult{CallID: "c", Parts: []byte(parts)}),
		}})
		wantJSON(t, body.Get("messages").At(1).Get("content").At(0).Get("content"), want)
	}
}
