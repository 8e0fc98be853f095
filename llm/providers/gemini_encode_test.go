package providers

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// googleBody encodes a request, twice.
func googleBody(t *testing.T, dialect, model string, req *llm.Request) rawjson.Value {
	t.Helper()
	req.Settings.Model = model
	return encodedTwice(t, "google", dialect, req)
}

// geminiSealed is the form of a block that a Gemini sealed.
func geminiSealed(dialect, seal string) content.Wire {
	return content.Form{Dialect: dialect, Seal: content.Seal{Type: content.Signature, Data: seal, Minted: dialect + "/gemini-2.5-pro"}}.Wire()
}

func TestGeminiEncodesAToolTurn(t *testing.T) {
	temperature := 0.5
	body := googleBody(t, "gemini", "gemini-3-pro", &llm.Request{
		Messages: []content.Message{
			message(content.RoleSystem, content.System("Be brief."), content.System(" ")),
			message(content.RoleUser, content.User("Weather in two towns?")),
			message(content.RoleAssistant,
				content.Reasoning{Wire: geminiSealed("gemini", "S0"), Text: "Look both up."},
				content.ToolCall{Wire: geminiSealed("gemini", "S1"), CallID: "made", Name: "weather", Arguments: `{"town": "Rome"}`},
				content.ToolCall{Wire: content.Form{Dialect: "gemini", ID: "b", Type: "bare"}.Wire(), CallID: "b", Name: "now", Arguments: "{}"},
				content.Text{Wire: geminiSealed("gemini", "S2"), Of: content.KindAssistant}),
			message(content.RoleUser, content.User("Quick!")),
			message(content.RoleTool, content.ToolResult{CallID: "b", Text: "no clock", IsError: true},
				content.ToolResult{CallID: "made", Parts: []byte(`{"celsius":40}`)}, content.ToolResult{CallID: "?", Name: "other", Parts: []byte(`[1]`)}),
			message(content.RoleSystem, content.System("In Celsius.")),
			message(content.NoRole, content.Note("never sent")),
		},
		Tools: []llm.Tool{
			{Name: "weather", Description: "of a town", Schema: []byte(`{"type":"object","properties":{"town":{"type":"string"}}}`)},
			{Name: "now"},
			{Native: []byte(`{"googleSearch":{}}`)},
		},
		Settings: llm.Settings{
			ToolChoice: "now", Temperature: &temperature, MaxOutputTokens: 50,
			Extra: []byte(`{"safetySettings":[],"generationConfig":{"topK":3,"temperature":1}}`),
		},
		Stream: true,
	})
	wantJSON(t, body, `{
		"systemInstruction":{"parts":[{"text":"Be brief."},{"text":"In Celsius."}]},
		"tools":[{"googleSearch":{}},{"functionDeclarations":[
			{"name":"weather","description":"of a town","parametersJsonSchema":{"type":"object","properties":{"town":{"type":"string"}}}},{"name":"now"}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["now"]}},
		"generationConfig":{"topK":3,"temperature":1,"maxOutputTokens":50,"thinkingConfig":{"includeThoughts":true}},
		"safetySettings":[],
		"contents":[
			{"role":"user","parts":[{"text":"Weather in two towns?"}]},
			{"role":"model","parts":[
				{"text":"Look both up.","thought":true,"thoughtSignature":"S0"},
				{"functionCall":{"name":"weather","args":{"town":"Rome"}},"thoughtSignature":"S1"},
				{"functionCall":{"name":"now","id":"b"}},
				{"text":"","thoughtSignature":"S2"}]},
			{"role":"user","parts":[
				{"functionResponse":{"name":"weather","response":{"celsius":40}}},
				{"functionResponse":{"name":"now","id":"b","response":{"error":"no clock"}}},
				{"functionResponse":{"name":"other","id":"?","response":{"output":[1]}}},
				{"text":"Quick!"}]}]}`)
}

// TestGeminiSendsNoForeignBlocks: no thought or seal of another, no tool that
// another ran; but its text and its calls, which from version 3 on need a word
// in the place of a seal.
func TestGeminiSendsNoForeignBlocks(t *testing.T) {
	foreign := []content.Block{
		sealed("claude's", "S1", "messages/claude-x"),
		content.Reasoning{Text: "plain", Format: content.FormatParsed},
		content.Reasoning{Wire: content.Form{Dialect: "gemini", Seal: content.Seal{Type: content.Signature, Data: "S2", Minted: "gemini/gemma-4"}}.Wire(), Text: "another family's"},
		content.Reasoning{Wire: content.Form{Dialect: "gemini", Incomplete: true}.Wire(), Text: "cut"},
		content.Native{Wire: content.Form{Dialect: "responses", Type: "x"}.Wire(), JSON: `{"type":"x"}`},
		content.ToolCall{Wire: content.Form{Dialect: "responses"}.Wire(), CallID: "ws_1", Name: "web_search", Server: true},
		content.ToolResult{Wire: content.Form{Dialect: "messages"}.Wire(), CallID: "ws_1", Text: "found", Server: true},
		content.Media{Of: content.KindImage, URL: "https://example.com/drawn.png"},
		content.Text{Wire: content.Form{Dialect: "chat", Seal: content.Seal{Type: content.Signature, Data: "S3", Minted: "chat/gemini-3"}}.Wire(), Of: content.KindAssistant, Text: "ho"},
		content.ToolCall{Wire: content.Form{Dialect: "chat", ID: "x"}.Wire(), CallID: "functions.f:0", Name: "f", Arguments: `{"a":1}`},
		content.ToolCall{Wire: content.Form{Dialect: "chat"}.Wire(), CallID: "toolu_2", Name: "g", Arguments: "SELECT 1"},
	}
	results := message(content.RoleTool, content.ToolResult{CallID: "functions.f:0", Text: "1"}, content.ToolResult{CallID: "toolu_2", Text: "2"})
	for model, word := range map[string]string{"gemini-2.5-pro": "", "gemini-3.1-pro-preview": `,"thoughtSignature":"skip_thought_signature_validator"`} {
		body := googleBody(t, "gemini", model, &llm.Request{Messages: []content.Message{message(content.RoleAssistant, foreign...), results}})
		wantJSON(t, body.Get("contents"), `[
			{"role":"model","parts":[{"text":"ho"},
				{"functionCall":{"name":"f","args":{"a":1},"id":"functions.f:0"}`+word+`},{"functionCall":{"name":"g","args":{"arguments":"SELECT 1"},"id":"toolu_2"}}]},
			{"role":"user","parts":[
				{"functionResponse":{"name":"f","id":"functions.f:0","response":{"output":"1"}}},
				{"functionResponse":{"name":"g","id":"toolu_2","response":{"output":"2"}}}]}]`)
	}
	body := googleBody(t, "interactions", "gemini-3-pro", &llm.Request{Messages: []content.Message{message(content.RoleAssistant, foreign...), results, message(content.RoleUser, content.User("so?"))}})
	wantJSON(t, body.Get("input"), `[
		{"type":"model_output","content":[{"type":"text","text":"ho"}]},
		{"type":"function_call","name":"f","id":"functions.f:0","arguments":{"a":1}},
		{"type":"function_call","name":"g","id":"toolu_2","arguments":{"arguments":"SELECT 1"}},
		{"type":"function_result","name":"f","call_id":"functions.f:0","result":"1"},
		{"type":"function_result","name":"g","call_id":"toolu_2","result":"2"},
		{"type":"user_input","content":[{"type":"text","text":"so?"}]}]`)
}

// TestGeminiCallThatLostItsSeal: its own call without a seal is not passed off as
// somebody else's.
func TestGeminiCallThatLostItsSeal(t *testing.T) {
	call := content.ToolCall{Wire: content.Form{Dialect: "gemini", ID: "c"}.Wire(), CallID: "c", Name: "f"}
	body := googleBody(t, "gemini", "gemini-3-pro", &llm.Request{Messages: []content.Message{message(content.RoleAssistant, call)}})
	wantJSON(t, body.Get("contents").At(0).Get("parts"), `[{"functionCall":{"name":"f","args":{},"id":"c"}}]`)
}

func TestGeminiSendsFiles(t *testing.T) {
	body := googleBody(t, "gemini", "gemini-2.5-pro", &llm.Request{Messages: []content.Message{message(content.RoleUser,
		content.User("a\xffb\xed\xa0\x80c"),
		content.Media{Of: content.KindImage, Data: "\x89PNG\r\n\x1a\n"},
		content.Media{Of: content.KindImage, URL: "data:image/webp;base64,AAAA"},
		content.Media{Of: content.KindFile, MediaType: "video/mp4", URL: "https://example.com/a.mp4"},
		content.Media{Of: content.KindFile, Name: "gone"})}})
	wantJSON(t, body.Get("contents").At(0).Get("parts"), `[{"text":"a`+"\uFFFD"+`b`+"\uFFFD"+`c"},
		{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},
		{"inlineData":{"mimeType":"image/webp","data":"AAAA"}},
		{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.com/a.mp4"}}]`)
	body = googleBody(t, "interactions", "gemini-2.5-pro", &llm.Request{Messages: []content.Message{message(content.RoleUser,
		content.Media{Of: content.KindImage, Data: "\x89PNG\r\n\x1a\n"},
		content.Media{Of: content.KindFile, MediaType: "video/mp4", URL: "https://example.com/a.mp4"},
		content.Media{Of: content.KindFile, MediaType: "application/pdf", Data: "%PDF"},
		content.Media{Of: content.KindFile, Name: "gone"})}})
	wantJSON(t, body.Get("input").At(0).Get("content"), `[
		{"type":"image","mime_type":"image/png","data":"iVBORw0KGgo="},
		{"type":"video","mime_type":"video/mp4","uri":"https://example.com/a.mp4"},
		{"type":"document","mime_type":"application/pdf","data":"JVBERg=="}]`)
}

// TestGeminiThinkingSettings: reasoning are to be shown where there may be some,
// and how much the model thinks is left to it.
func TestGeminiThinkingSettings(t *testing.T) {
	for name, c := range map[string]struct {
		model    string
		settings llm.Reasoning
		gemini   string
		other    string // the interactions dialect
	}{
		"unsaid":              {"gemini-2.5-pro", llm.Reasoning{}, `{"includeThoughts":true}`, `{"thinking_summaries":"auto"}`},
		"off":                 {"gemini-2.5-pro", llm.Reasoning{Disabled: true}, `{"thinkingBudget":128}`, `{"thinking_level":"minimal"}`},
		"no summary":          {"gemini-2.5-pro", llm.Reasoning{Summary: "none"}, ``, ``},
		"a budget":            {"gemini-3-pro", llm.Reasoning{MaxTokens: 100, Effort: "high"}, `{"includeThoughts":true,"thinkingBudget":100}`, `{"thinking_summaries":"auto","thinking_level":"minimal"}`},
		"an effort":           {"gemini-2.5-flash", llm.Reasoning{Effort: "medium"}, `{"includeThoughts":true,"thinkingBudget":8192}`, `{"thinking_summaries":"auto","thinking_level":"medium"}`},
		"no thought, old":     {"gemini-2.5-flash", llm.Reasoning{Effort: "none"}, `{"thinkingBudget":0}`, `{"thinking_summaries":"auto","thinking_level":"minimal"}`},
		"no thought":          {"gemini-3-flash-preview", llm.Reasoning{Effort: "none"}, `{"includeThoughts":true,"thinkingLevel":"minimal"}`, `{"thinking_summaries":"auto","thinking_level":"minimal"}`},
		"a word":              {"models/gemini-flash-latest", llm.Reasoning{Effort: "xhigh", Hidden: true}, `{"thinkingLevel":"high"}`, `{"thinking_level":"high"}`},
		"a word that is none": {"gemini-3-pro", llm.Reasoning{Effort: "fast"}, `{"includeThoughts":true}`, `{"thinking_summaries":"auto"}`},
		"not a Gemini":        {"gemma-4-31b-it", llm.Reasoning{}, ``, `{"thinking_summaries":"auto"}`},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[string]string{"gemini": `{"generationConfig":{"thinkingConfig":` + c.gemini + `}}`, "interactions": `{"generation_config":` + c.other + `}`}
			if c.gemini == "" {
				wanted["gemini"] = "{}"
			}
			if c.other == "" {
				wanted["interactions"] = "{}"
			}
			for dialect, want := range wanted {
				body := googleBody(t, dialect, c.model, &llm.Request{Settings: llm.Settings{Reasoning: c.settings}})
				wantJSON(t, rawjson.Without(body, "contents", "model", "input", "store"), want)
			}
		})
	}
}

func TestInteractionsEncodesAToolTurn(t *testing.T) {
	temperature := 0.5
	output := func(w content.Wire, more string) content.Wire {
		f := w.Form()
		f.Dialect, f.Type, f.Extra = "interactions", more, nil
		return f.Wire()
	}
	body := googleBody(t, "interactions", "gemini-2.5-pro", &llm.Request{
		Messages: []content.Message{
			message(content.RoleSystem, content.System("Be brief.")),
			message(content.RoleUser, content.User("Weather"), content.User("in two towns?")),
			message(content.RoleAssistant,
				content.Reasoning{Wire: geminiSealed("interactions", "S0"), Text: "Look"},
				content.Reasoning{Wire: geminiSealed("interactions", "S1"), Parts: []string{"one", "two"}},
				content.Text{Wire: output(content.Wire{}, "model_output"), Of: content.KindAssistant, Text: "a"},
				content.Text{Wire: output(content.Wire{}, "content"), Of: content.KindAssistant, Text: "b"},
				content.Text{Wire: output(content.Wire{}, "model_output"), Of: content.KindAssistant, Text: "c"},
				content.ToolCall{Wire: geminiSealed("interactions", "S2"), CallID: "a", Name: "weather", Arguments: `{"town":"Rome"}`},
				content.ToolCall{CallID: "b", Name: "now"}),
			message(content.RoleTool, content.ToolResult{CallID: "b", Text: "no clock", IsError: true}, content.ToolResult{CallID: "a", Parts: []byte(`{"celsius":40}`)}),
			message(content.RoleUser, content.User("Quick!"), content.Note("never sent")),
			message(content.RoleAssistant, content.Assistant("Yes.")),
			message(content.RoleSystem, content.System("In Celsius.")),
		},
		Tools:    []llm.Tool{{Name: "weather", Description: "of a town", Schema: []byte(`{"type":"object"}`)}, {Native: []byte(`{"type":"google_search"}`)}},
		Settings: llm.Settings{ToolChoice: "required", Temperature: &temperature, MaxOutputTokens: 9, Extra: []byte(`{"store":true}`)},
		Stream:   true,
	})
	wantJSON(t, body, `{
		"model":"gemini-2.5-pro","store":true,"stream":true,"system_instruction":"Be brief.\n\nIn Celsius.",
		"tools":[{"type":"function","name":"weather","description":"of a town","parameters":{"type":"object"}},{"type":"google_search"}],
		"generation_config":{"max_output_tokens":9,"temperature":0.5,"thinking_summaries":"auto","tool_choice":"any"},
		"input":[
			{"type":"user_input","content":[{"type":"text","text":"Weather"},{"type":"text","text":"in two towns?"}]},
			{"type":"thought","summary":[{"type":"text","text":"Look"}],"signature":"S0"},
			{"type":"thought","summary":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"signature":"S1"},
			{"type":"model_output","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"type":"model_output","content":[{"type":"text","text":"c"}]},
			{"type":"function_call","name":"weather","id":"a","arguments":{"town":"Rome"},"signature":"S2"},
			{"type":"function_call","name":"now","id":"b","arguments":{}},
			{"type":"function_result","name":"weather","call_id":"a","result":{"celsius":40}},
			{"type":"function_result","name":"now","call_id":"b","result":"no clock","is_error":true},
			{"type":"user_input","content":[{"type":"text","text":"Quick!"}]},
			{"type":"model_output","content":[{"type":"text","text":"Yes."}]}]}`)
}

func TestGeminiRefusesAnExtraThatIsNoObject(t *testing.T) {
	c, err := Open("google", Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Encode(&llm.Request{Settings: llm.Settings{Extra: []byte(`[1]`)}}); err == nil || !strings.Contains(err.Error(), "request.extra") {
		t.Errorf("extra that is no object: %v", err)
	}
}
