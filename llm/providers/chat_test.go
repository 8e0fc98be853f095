package providers

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// TestChatReportsErrors: who is at fault decides what can be done.
func TestChatReportsErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       error
		message    string // of an APIError
	}{
		{"nothing", "", llm.ErrTruncated, ""},
		{"a web page", "<html>502</html>", llm.ErrProtocol, ""},
		{"half a response", `{"choices":[{"message":{"content":"Hi"`, llm.ErrTruncated, ""},
		{"no message", `{"id":"x","choices":[]}`, llm.ErrProtocol, ""},
		{"a list", `[1,2]`, llm.ErrProtocol, ""},
		{"a chunk that is no object", "data: 7\n\n", llm.ErrProtocol, ""},
		{"a chunk that is no JSON", "data: {x}\n\ndata: [DONE]\n\n", llm.ErrProtocol, ""},
		{"only the end", "data: [DONE]\n\n", llm.ErrTruncated, ""},
		{"no reason to end", `data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\n", llm.ErrTruncated, ""},
		{"an error", `{"error":{"message":"no","type":"invalid_request_error","code":"c","param":"p"}}`, nil, "no"},
		{"an error in words", `{"error":"no"}`, nil, "no"},
		{"an error in a list", `[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]`, nil, "no"},
		{"an error that is the response", `{"object":"error","message":"no","type":"BadRequestError","code":400}`, nil, "no"},
		{"an error of the choice", `{"choices":[{"message":{"content":""},"error":{"message":"no","code":502}}]}`, nil, "no"},
		{"an error of Groq", `data: {"choices":[],"x_groq":{"id":"r","error":"no"}}` + "\n\n", nil, "no"},
		{"an error event", "event: error\ndata: {\"message\":\"no\"}\n\n", nil, "no"},
		{"an error after the end", `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"error":{"message":"no"}}` + "\n\n", nil, "no"},
	} {
		_, _, err := readAll(mustTarget("chat", "chat", "m"), strings.NewReader(c.body))
		var api *llm.APIError
		if c.message != "" && (!errors.As(err, &api) || api.Message != c.message || len(api.Raw) == 0) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	const silent = `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"usage":{"prompt_tokens":3}}]}` + "\n\ndata: [DONE]\n\n"
	reply, _, err := readAll(mustTarget("chat", "chat", "m"), strings.NewReader(silent))
	if err != nil || reply.Text() != "Hi" || reply.Usage.Input != 3 {
		t.Errorf("an end without a reason: %v, %+v", err, reply)
	}
}

// TestChatTooManyBlocks: what a response makes of its bytes has an end.
func TestChatTooManyBlocks(t *testing.T) {
	many := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", 1<<16+1), ",") }
	for name, body := range map[string]string{
		"parts":   chatMessageBody(`{"content":[` + many(`{}`) + `]}`),
		"details": chatMessageBody(`{"reasoning":"x","reasoning_details":[` + many(`{}`) + `]}`),
		"calls":   chatChunks(`{"tool_calls":[` + many(`{"function":{"name":"f","arguments":"{"}}`) + `]}`),
		"runs":    chatChunks(`{"executed_tools":[` + many(`{}`) + `]}`),
	} {
		reply, _, err := readAll(mustTarget("chat", "chat", "m"), strings.NewReader(body))
		if !errors.Is(err, llm.ErrProtocol) || len(reply.Blocks) > 1<<16 {
			t.Errorf("%s: %d blocks, %v", name, len(reply.Blocks), err)
		}
	}
}

// TestChatKeepsUnknownMembers: a message goes back to the letter, whatever its
// shape.
func TestChatKeepsUnknownMembers(t *testing.T) {
	for _, message := range []string{
		`{"role":"assistant","content":"Hi","refusal":null,"annotations":[{"url":"x"}],"later":{"n":1.50}}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","index":0,"function":{"name":"f","arguments":{"x":[1]},"strict":true},"new":1}]}`,
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":null}},{"id":"b","type":"custom","custom":{"name":"sh","input":"ls"}},{"id":"c","type":"later","later":{"x":1}}]}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{ }","later":1}}`,
		`{"role":"assistant","content":"","reasoning":"A","reasoning_content":"A","reasoning_text":"other","reasoning_details":[]}`,
		`{"role":"assistant","content":"Hi","reasoning":"AB","reasoning_details":[{"type":"reasoning.text","text":"A","signature":null,"index":0},{"type":"reasoning.text","text":"B","index":1,"id":null},{"type":"reasoning.later","x":[]}]}`,
		`{"role":"assistant","content":"Hi","reasoning":{"later":true}}`,
		`{"role":"assistant","content":" ","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
		`{"role":"assistant","content":"<think>\n</think>","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":"<think>a</think> <thought>b</thought>\nHi\n</think>"}`,
		`{"role":"assistant","content":"a\n</think>\nHi","x":"\u2028\u0000"}`,
		`{"role":"assistant","content":[{"type":"text","text":"A","later":1},{"type":"text","text":""},{"type":"image_url","image_url":{"url":"u"}},{"type":"thinking","thinking":"plain words"},{"type":"text","text":"B"}]}`,
		`{"role":"assistant","content":null,"images":[{"type":"image_url","image_url":{"url":"data:"}}],"audio":{"id":"x","data":"AA"}}`,
		`{"role":"assistant","content":null,"later":["alone"]}`,
		`{"role":"assistant","content":"Hi","extra_content":{"google":{"thought_signature":"c2ln","later":1},"x":2}}`,
		`{"role":"assistant","content":"Hi","executed_tools":[{"index":0,"type":"search","name":"web","arguments":"{}","output":"o","search_results":{"results":[]}},{"type":"python","id":"z"}]}`,
		`{"role":"assistant","content":null,"refusal":"No."}`,
		`{"role":"assistant","content":{"later":1},"tool_calls":{"later":1},"reasoning_details":"later","refusal":["later"],"executed_tools":7,"function_call":"auto","extra_content":1}`,
	} {
		reply, _, err := readAll(mustTarget("chat", "chat", "m"), strings.NewReader(chatMessageBody(message)))
		if err != nil {
			t.Error(message, err)
			continue
		}
		for i, b := range reply.Blocks {
			if reply.Blocks[i], err = content.Decode(content.Encode(b)); err != nil {
				t.Error(err)
			}
		}
		if have := replayOf(mustTarget("chat", "chat", "m"), reply.Blocks); !rawjson.Equal(have, rawjson.Value(message)) {
			t.Errorf("have\n%s\nwant\n%s", have, message)
		}
	}
}

// TestChatSendsSealsToTheirModelOnly: a seal goes to the model family that minted it. Others
// get the text, where there are any.
func TestChatSendsSealsToTheirModelOnly(t *testing.T) {
	body := chatMessageBody(`{"role":"assistant","content":"Hi","reasoning":"Words.","reasoning_opaque":"b3Bh","reasoning_details":[
		{"type":"reasoning.text","text":"Words.","signature":"c2ln","index":0},{"type":"reasoning.encrypted","data":"ZW5j","index":1}],
		"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"Z29v"}}}],
		"extra_content":{"google":{"thought_signature":"dGV4dA=="}}}`)
	reply, _, err := readAll(mustTarget("chat", "openrouter", "anthropic/claude-sonnet-4"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	seals := []string{"c2ln", "ZW5j", "Z29v", "dGV4dA==", "b3Bh"}
	home := replayOf(mustTarget("chat", "openrouter", "anthropic/claude-opus-4.5"), reply.Blocks)
	for _, seal := range seals {
		if !bytes.Contains(home, []byte(seal)) {
			t.Errorf("seal %s is not in\n%s", seal, home)
		}
	}
	for _, to := range []wire.Target{mustTarget("chat", "openrouter", "openai/gpt-5"), mustTarget("chat", "deepseek", "deepseek-chat"), mustTarget("chat", "groq", "qwen"), mustTarget("chat", "openai", "gpt-5")} {
		away := replayOf(to, reply.Blocks)
		for _, seal := range seals {
			if bytes.Contains(away, []byte(seal)) {
				t.Errorf("%s gets the seal %s: %s", to.Provider, seal, away)
			}
		}
		if words := bytes.Contains(away, []byte("Words.")); words == to.Quirks.NoReasoningField {
			t.Errorf("%s gets %s", to.Provider, away)
		}
	}
}

// TestChatEncodesForeignReasoning: which field a plain thought goes to.
func TestChatEncodesForeignReasoning(t *testing.T) {
	blocks := []content.Block{
		content.Reasoning{Wire: content.Form{Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: "c2ln", Minted: "messages/claude"}}.Wire(), Text: "One."},
		content.Reasoning{Text: "Two."},
		content.Assistant("Hi"),
	}
	for _, c := range []struct {
		provider string
		native   bool
		want     string
	}{
		{"nobody-knows", false, `{"role":"assistant","content":"Hi","reasoning_content":"One.\n\nTwo."}`},
		{"openrouter", false, `{"role":"assistant","content":"Hi","reasoning":"One.\n\nTwo."}`},
		{"openrouter", true, `{"role":"assistant","content":"Hi","reasoning_details":[{"type":"reasoning.text","text":"One."},{"type":"reasoning.text","text":"Two."}]}`},
		{"github-copilot", false, `{"role":"assistant","content":"Hi","reasoning_text":"One.\n\nTwo."}`},
		{"openai", false, `{"role":"assistant","content":"Hi"}`},
		{"mistral", false, `{"role":"assistant","content":"Hi"}`},
		{"mistral", true, `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"One."}]},{"type":"thinking","thinking":[{"type":"text","text":"Two."}]},{"type":"text","text":"Hi"}]}`},
	} {
		body, err := mustTarget("chat", c.provider, "m").Encode(&llm.Request{Messages: []content.Message{message(content.RoleAssistant, blocks...)}, Settings: llm.Settings{Reasoning: llm.Reasoning{Native: c.native}}})
		if have := body.Get("messages").At(0); err != nil || string(have) != c.want {
			t.Errorf("%s gets\n%s\nwant\n%s", c.provider, have, c.want)
		}
	}
	own := []content.Block{content.Reasoning{Wire: content.Form{Dialect: "chat"}.Wire(), Format: content.FormatParsed, Source: "reasoning_content", Text: "One."}, content.Assistant("Hi")}
	if have := replayOf(mustTarget("chat", "openrouter", "m"), own); have.Get("reasoning_content").Text() != "One." {
		t.Errorf("a thought does not go back in its own field: %s", have)
	}
	if have := replayOf(mustTarget("chat", "groq", "m"), own); have.Get("reasoning_content") != nil || have.Get("reasoning").Text() != "One." {
		t.Errorf("a strict server gets %s", have)
	}
	if have := replayOf(mustTarget("chat", "openai", "m"), own[:1]); have != nil {
		t.Errorf("nothing to say, and %s is sent", have)
	}
}

// TestChatNeedsReasoningInToolLoop, and where the key goes.
func TestChatNeedsReasoningInToolLoop(t *testing.T) {
	d := dialectNamed("chat")
	for _, c := range []struct {
		provider, header, value string
		wants                   bool
	}{
		{"openai", "Authorization", "Bearer k", false},
		{"azure", "Api-Key", "k", false},
		{"deepseek", "Authorization", "Bearer k", true},
		{"nobody-knows", "Authorization", "Bearer k", true},
	} {
		to, h := mustTarget("chat", c.provider, "m"), http.Header{}
		d.Sign(h, to, "k")
		if to.NeedsReasoningInToolLoop() != c.wants || len(h) != 1 || h.Get(c.header) != c.value {
			t.Errorf("%s: wants its turn: %t, %v", c.provider, to.NeedsReasoningInToolLoop(), h)
		}
		h = http.Header{}
		if d.Sign(h, to, ""); len(h) != 0 {
			t.Errorf("without a key: %v", h)
		}
	}
}
