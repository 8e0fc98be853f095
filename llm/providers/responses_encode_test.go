package providers

import (
	"cmp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// responsesBody encodes a request to a GPT, twice.
func responsesBody(t *testing.T, provider string, req *llm.Request) rawjson.Value {
	t.Helper()
	req.Settings.Model = cmp.Or(req.Settings.Model, "gpt-5-mini")
	return encodedTwice(t, provider, "responses", req)
}

// gptReasoning is a reasoning block of a GPT as it comes, without text when text is empty.
func gptReasoning(id, text, seal string) content.Reasoning {
	r := content.Reasoning{Wire: content.Form{Dialect: "responses", ID: id}.Wire(), Format: content.FormatResponses, Source: "summary", Text: text}
	if seal != "" {
		r.SetSeal(content.Seal{Type: content.Encrypted, Data: seal, Minted: "responses/gpt-5"})
	}
	return r
}

// ownForm is the form of a block of this dialect.
func ownForm(kind, id string) content.Wire {
	return content.Form{Dialect: "responses", Type: kind, ID: id}.Wire()
}

func TestResponsesEncodesAToolTurn(t *testing.T) {
	temperature := 0.5
	say := content.Assistant("Looking.")
	say.Wire = content.Form{Dialect: "responses", ID: "msg_1", Extra: []byte(`{"message":{"role":"assistant","status":"completed","phase":"commentary"},"part":{"annotations":[]}}`)}.Wire()
	body := responsesBody(t, "openai", &llm.Request{
		Messages: []content.Message{
			message(content.RoleSystem, content.System("Be brief.")),
			message(content.RoleUser, content.User("Weather in two towns?"), content.User(""), content.Note("not sent")),
			message(content.RoleAssistant,
				gptReasoning("rs_1", "Look both up.", "S1"), say, gptReasoning("rs_2", "", "S2"),
				content.ToolCall{Wire: ownForm("function_call", "fc_1"), CallID: "a", Name: "weather", Arguments: `{"town": "Rome"}`},
				content.ToolCall{Wire: ownForm("custom_tool_call", "ct_1"), CallID: "b", Name: "sh", Arguments: "ls"},
				content.ToolCall{Wire: ownForm("web_search_call", "ws_1"), CallID: "ws_1", Name: "web_search_call", Arguments: `{"type":"search"}`, Server: true}),
			message(content.RoleTool, content.ToolResult{CallID: "b", Text: "x.go"}, content.ToolResult{CallID: "a", Text: "40 C"}),
			message(content.RoleUser, content.User("Quick!")),
		},
		Tools:    []llm.Tool{{Name: "weather", Description: "of a town", Schema: []byte(`{"type":"object"}`)}, {Name: "now"}, {Native: []byte(`{"type":"custom","name":"sh"}`)}},
		Settings: llm.Settings{ToolChoice: "required", Temperature: &temperature, MaxOutputTokens: 100, Extra: []byte(`{"metadata":{"user":"u"},"temperature":1}`)},
		Stream:   true,
	})
	wantJSON(t, body, `{
		"model":"gpt-5-mini","max_output_tokens":100,"stream":true,"temperature":1,"metadata":{"user":"u"},"store":false,
		"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"},"tool_choice":"required",
		"tools":[{"type":"function","name":"weather","description":"of a town","parameters":{"type":"object"},"strict":false},
			{"type":"function","name":"now","parameters":{"type":"object","properties":{}},"strict":false},{"type":"custom","name":"sh"}],
		"input":[
			{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Weather in two towns?"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"Look both up."}],"encrypted_content":"S1"},
			{"type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Looking.","annotations":[]}]},
			{"type":"reasoning","summary":[],"encrypted_content":"S2"},
			{"type":"function_call","call_id":"a","name":"weather","arguments":"{\"town\": \"Rome\"}"},
			{"type":"custom_tool_call","call_id":"b","name":"sh","input":"ls"},
			{"type":"web_search_call","id":"ws_1","action":{"type":"search"}},
			{"type":"function_call_output","call_id":"a","output":"40 C"},
			{"type":"custom_tool_call_output","call_id":"b","output":"x.go"},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Quick!"}]}]}`)
}

// TestResponsesSendsReasoningToItsModelOnly: sealed for this family, with the item
// that followed, and never by a name that nobody remembers.
func TestResponsesSendsReasoningToItsModelOnly(t *testing.T) {
	foreign := gptReasoning("rs_x", "grok's", "X")
	seal := foreign.Form().Seal
	seal.Minted = "responses/grok-4"
	foreign.SetSeal(seal)
	cut := gptReasoning("rs_c", "cut", "C")
	cut.SetIncomplete(true)
	open := content.Reasoning{Wire: ownForm("", "rs_o"), Source: "content", Text: "two and two"}
	compaction := content.Native{Wire: ownForm("compaction", ""), JSON: `{"type":"compaction","encrypted_content":"X"}`}
	compaction.SetSeal(foreign.Form().Seal)
	blocks := []content.Block{
		foreign, cut, open, compaction, gptReasoning("rs_n", "summed up", ""), gptReasoning("rs_e", "", ""),
		content.Reasoning{Text: "plain", Format: content.FormatParsed},
		content.ToolCall{Wire: content.Form{Dialect: "messages"}.Wire(), CallID: "srv", Name: "web_search", Server: true},
		content.ToolResult{Wire: content.Form{Dialect: "messages"}.Wire(), CallID: "srv", Text: "found", Server: true},
		content.Native{Wire: content.Form{Dialect: "messages"}.Wire(), JSON: `{"type":"x"}`},
		content.Media{Of: content.KindImage, URL: "https://example.com/a.png"},
		content.Assistant("ho"), content.Assistant(" ho"), gptReasoning("rs_t", "", "T"),
	}
	send := func(provider string, extra string) rawjson.Value {
		t.Helper()
		return responsesBody(t, provider, &llm.Request{
			Messages: []content.Message{message(content.RoleAssistant, blocks...), message(content.RoleUser, content.User("hi"))},
			Settings: llm.Settings{Extra: []byte(extra)},
		})
	}
	const said = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"},{"type":"output_text","text":" ho"}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
	for _, provider := range []string{"openai", "openai-responses", "azure-responses", "xai-responses"} {
		wantJSON(t, send(provider, "").Get("input"), `[`+said+`]`)
	}
	const plain = `{"type":"reasoning","id":"rs_o","summary":[],"content":[{"type":"reasoning_text","text":"two and two"}]}`
	wantJSON(t, send("lmstudio-responses", "").Get("input"), `[`+plain+`,`+said+`]`)

	// A provider that keeps responses knows them by their ids.
	if left := send("openai", `{"store":null}`); left.Get("store") != nil || left.Get("input").At(1).Get("id").Text() != "rs_n" {
		t.Errorf("left to the provider: %s", left)
	}
	kept := send("openai", `{"store":true,"previous_response_id":"resp_1"}`)
	if string(kept.Get("store")) != "true" || kept.Get("previous_response_id").Text() != "resp_1" {
		t.Errorf("not told: %s", kept)
	}
	wantJSON(t, kept.Get("input"), `[`+plain+`,{"type":"reasoning","id":"rs_n","summary":[{"type":"summary_text","text":"summed up"}]},{"type":"reasoning","id":"rs_e","summary":[]},`+said+`]`)
}

func TestResponsesReasoningSettings(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		ask      llm.Reasoning
		want     string
	}{
		"by default":        {"openai", llm.Reasoning{}, `{"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"}}`},
		"not at all":        {"openai", llm.Reasoning{Disabled: true}, `{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"minimal"}}`},
		"only how much":     {"openai", llm.Reasoning{Hidden: true, Effort: "low"}, `{"reasoning":{"effort":"low"}}`},
		"in detail":         {"openai", llm.Reasoning{Effort: "high", Summary: "detailed"}, `{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"detailed"}}`},
		"sealed only":       {"openai", llm.Reasoning{Summary: "none"}, `{"include":["reasoning.encrypted_content"]}`},
		"a budget, unknown": {"openai", llm.Reasoning{Summary: "none", MaxTokens: 9}, `{"include":["reasoning.encrypted_content"]}`},
		"a budget, known":   {"openrouter", llm.Reasoning{Effort: "low", MaxTokens: 9}, `{"include":["reasoning.encrypted_content"],"reasoning":{"max_tokens":9,"summary":"auto"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := responsesBody(t, c.provider, &llm.Request{Settings: llm.Settings{Reasoning: c.ask}})
			wantJSON(t, rawjson.Without(body, "model", "input", "store"), c.want)
		})
	}
}

// TestResponsesEncodesEachKindOfResult: every tool that the client runs wants its
// result in an item of its own.
func TestResponsesEncodesEachKindOfResult(t *testing.T) {
	call := func(kind, id string) content.ToolCall {
		return content.ToolCall{Wire: ownForm(kind, "i_"+id), CallID: id, Name: strings.TrimSuffix(kind, "_call"), Arguments: `{"x":1}`}
	}
	body := responsesBody(t, "openai", &llm.Request{Messages: []content.Message{
		message(content.RoleAssistant, call("shell_call", "1"), call("shell_call", "2"), call("apply_patch_call", "3"), call("computer_call", "4"),
			call("computer_call", "5"), call("local_shell_call", "6"), content.ToolCall{Wire: ownForm("tool_search_call", "i_7"), CallID: "7", Name: "tool_search_call", Arguments: "{}"},
			content.ToolCall{CallID: "8", Name: "f"}, content.ToolCall{CallID: "9", Name: "f", Arguments: "{}"}),
		message(content.RoleTool,
			content.ToolResult{CallID: "1", Text: "bad", IsError: true},
			content.ToolResult{CallID: "2", Parts: []byte(`[{"stdout":"x","stderr":"","outcome":{"type":"timeout"}}]`)},
			content.ToolResult{CallID: "3", Text: "no such file", IsError: true},
			content.ToolResult{CallID: "4", Text: "data:image/png;base64,AA"},
			content.ToolResult{CallID: "5", Parts: []byte(`{"type":"computer_screenshot","file_id":"f"}`)},
			content.ToolResult{CallID: "6", Text: "out"}, content.ToolResult{CallID: "7", Text: "none"},
			content.ToolResult{CallID: "8", Parts: []byte(`[{"type":"text","text":"x"},{"type":"image"}]`)},
			content.ToolResult{CallID: "9", Parts: []byte(`[{"type":"input_image","image_url":"https://example.com/a.png"}]`)}),
		message(content.RoleUser, content.Native{Wire: ownForm("mcp_approval_response", ""), JSON: `{"type":"mcp_approval_response","approve":true}`}),
	}})
	wantJSON(t, body.Get("input"), `[
		{"type":"shell_call","id":"i_1","call_id":"1","action":{"x":1}},{"type":"shell_call","id":"i_2","call_id":"2","action":{"x":1}},
		{"type":"apply_patch_call","id":"i_3","call_id":"3","operation":{"x":1}},{"type":"computer_call","id":"i_4","call_id":"4","action":{"x":1}},
		{"type":"computer_call","id":"i_5","call_id":"5","action":{"x":1}},{"type":"local_shell_call","id":"i_6","call_id":"6","action":{"x":1}},
		{"type":"tool_search_call","id":"i_7","call_id":"7","arguments":{}},
		{"type":"function_call","call_id":"8","name":"f","arguments":"{}"},{"type":"function_call","call_id":"9","name":"f","arguments":"{}"},
		{"type":"shell_call_output","call_id":"1","output":[{"stdout":"bad","stderr":"","outcome":{"type":"exit","exit_code":1}}]},
		{"type":"shell_call_output","call_id":"2","output":[{"stdout":"x","stderr":"","outcome":{"type":"timeout"}}]},
		{"type":"apply_patch_call_output","call_id":"3","status":"failed","output":"no such file"},
		{"type":"computer_call_output","call_id":"4","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AA"}},
		{"type":"computer_call_output","call_id":"5","output":{"type":"computer_screenshot","file_id":"f"}},
		{"type":"local_shell_call_output","call_id":"6","output":"out"},
		{"type":"tool_search_output","call_id":"7","execution":"client","tools":[]},
		{"type":"function_call_output","call_id":"8","output":"x\n[image]"},
		{"type":"function_call_output","call_id":"9","output":[{"type":"input_image","image_url":"https://example.com/a.png"}]},
		{"type":"mcp_approval_response","approve":true}]`)
}

func TestResponsesEncodesUnsendableText(t *testing.T) {
	long := strings.Repeat("x", 70)
	body := responsesBody(t, "openai", &llm.Request{Messages: []content.Message{
		message(content.RoleUser, content.User("a\xffb\xed\xa0\x80c"),
			content.Media{Of: content.KindImage, Data: "\x89PNG\r\n\x1a\n"},
			content.Media{Of: content.KindImage, URL: "https://example.com/a.png", Wire: content.Form{Dialect: "responses", Extra: []byte(`{"detail":"low"}`)}.Wire()},
			content.Media{Of: content.KindFile, MediaType: "application/pdf", Name: "p", Data: "%PDF"},
			content.Media{Of: content.KindFile, URL: "https://example.com/p.pdf"},
			content.Media{Of: content.KindFile, Name: "kept", Wire: content.Form{Dialect: "responses", Extra: []byte(`{"file_id":"f1"}`)}.Wire()},
			content.Media{Of: content.KindFile, Name: "gone"}),
		message(content.RoleAssistant, content.ToolCall{CallID: long, Name: "f", Arguments: "{}"}, content.ToolCall{CallID: long + "y", Name: "f", Arguments: "{}"}),
		message(content.RoleTool, content.ToolResult{CallID: long, Text: "1"}, content.ToolResult{CallID: long + "y", Text: "2"}),
	}})
	input := body.Get("input")
	wantJSON(t, input.At(0).Get("content"), `[{"type":"input_text","text":"a`+"\uFFFD"+`b`+"\uFFFD"+`c"},
		{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="},
		{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"},
		{"type":"input_file","filename":"p","file_data":"data:application/pdf;base64,JVBERg=="},
		{"type":"input_file","file_url":"https://example.com/p.pdf"},
		{"type":"input_file","file_id":"f1"}]`)
	ids := map[string]bool{}
	for i := range 2 {
		id := input.At(1 + i).Get("call_id").Text()
		if ids[id] = true; len(id) > 64 || input.At(3+i).Get("call_id").Text() != id {
			t.Errorf("call %q is answered as %q", id, input.At(3+i).Get("call_id").Text())
		}
	}
	if len(ids) != 2 {
		t.Errorf("two calls became one: %v", ids)
	}
}

func TestResponsesToolChoice(t *testing.T) {
	tools := []llm.Tool{{Name: "f"}, {Native: []byte(`{"type":"custom","name":"sh"}`)}, {Native: []byte(`{"type":"web_search"}`)}}
	for choice, want := range map[string]string{
		"auto": `"auto"`, "none": `"none"`, "f": `{"type":"function","name":"f"}`, "sh": `{"type":"custom","name":"sh"}`, "web_search": `{"type":"web_search"}`,
	} {
		wantJSON(t, responsesBody(t, "openai", &llm.Request{Tools: tools, Settings: llm.Settings{ToolChoice: choice}}).Get("tool_choice"), want)
	}
	c, err := Open("openai-responses", Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Encode(&llm.Request{Settings: llm.Settings{Extra: []byte(`[]`)}}); err == nil || !strings.Contains(err.Error(), "want a JSON object") {
		t.Errorf("extra that is no object: %v", err)
	}
}
