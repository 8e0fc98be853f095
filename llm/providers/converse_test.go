package providers

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// TestConverseUnusualResponses: errors in words, blocks of which only deltas come,
// reasoning of two sorts in one place, calls that break off at the output limit.
func TestConverseUnusualResponses(t *testing.T) {
	delta := func(d string) string { return `{"contentBlockDelta":{"contentBlockIndex":0,"delta":` + d + "}}\n" }
	start := func(s string) string { return `{"contentBlockStart":{"contentBlockIndex":0,"start":` + s + "}}\n" }
	stop := `{"messageStop":{"stopReason":"max_tokens"}}`
	for _, c := range []struct{ body, blocks, err string }{
		{`{"message":"The model is wrong."}`, "", "converse: The model is wrong."},
		{`{"__type":"ValidationException","Message":"No."}`, "", "converse (ValidationException): No."},
		{`{"ok":true}`, "", "not what the provider's format allows"},
		{`{"messageStart":{"role":"assistant"}}`, "", "the answer breaks off"},
		{stop, "", ""},
		{`{"internalServerException":{"message":"oh"}}`, "", "converse (internalServerException): oh"},
		{`{"output":{"message":{"content":[{"reasoningContent":{"later":1}},7]}},"stopReason":"end_turn"}`, `other:reasoningContent:{"reasoningContent":{"later":1}} other::7`, ""},
		{delta(`{"sketch":{"a":"x"}}`) + delta(`{"sketch":{"a":"y"}}`) + stop, `other:sketch:{"sketch":{"a":"xy"}}`, ""},
		{delta(`{"citation":{"n":1}}`) + delta(`{"text":"So."}`) + stop, "text:So.", ""},
		{delta(`{"toolUse":{"input":"{}"}}`) + delta(`{}`) + stop, "", ""},
		{delta(`{"reasoningContent":{"text":"A"}}`) + delta(`{"reasoningContent":{"redactedContent":"AA=="}}`) + stop, "reasoning:A reasoning:", ""},
		{start(`{"toolUse":{"toolUseId":"a","name":"f","input":{"n":1}}}`) + stop, `tool_call:{"n":1}`, ""},
		{start(`{"toolUse":{"toolUseId":"a","name":"f","input":{"n":1}}}`) + delta(`{"toolUse":{"input":"{\"n"}}`) + stop, `tool_call:{"n (cut)`, ""},
		{start(`{"toolUse":{"toolUseId":"a","name":"f"}}`) + delta(`{"toolUse":{"input":"{}"}}`), "", "the answer breaks off"},
		{delta(`{"text":"Half"}`) + strings.ReplaceAll(start(`{"toolUse":{"toolUseId":"a","name":"f"}}`), "Index\":0", "Index\":1"), "text:Half", "the answer breaks off"},
	} {
		checkUnusual(t, "converse", c.body, c.blocks, c.err)
	}
}

// TestConverseReplaysCitationsInParts: words in several parts are one text.
func TestConverseReplaysCitationsInParts(t *testing.T) {
	const item = `{"citationsContent":{"content":[{"text":"One, "},{"text":"two."}],"citations":[{"title":"x"}]}}`
	r := recording{API: "converse"}
	reply, _, err := r.read(strings.NewReader(`{"output":{"message":{"content":[` + item + `]}},"stopReason":"end_turn"}`))
	if err != nil || reply.Text() != "One, two." {
		t.Fatalf("%+v, %v", reply, err)
	}
	tt := r.target()
	wantJSON(t, tt.Replay(reply.Blocks), `{"role":"assistant","content":[`+item+`]}`)
	edited, err := content.WithText(reply.Blocks[0], "Three.")
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, tt.Replay([]content.Block{edited}), `{"role":"assistant","content":[{"text":"Three."}]}`)
}
