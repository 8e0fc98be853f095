package providers

import (
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// TestRules holds every rule to a request that breaks it and to one that does
// not.
func TestRules(t *testing.T) {
	const tools = `"messages":[{"role":"user","content":"Weather?"},`
	for _, c := range []struct {
		name, provider, model, body string
		want                        []string
	}{
		{"messages: a whole loop", "anthropic", "", `{"thinking":{"type":"enabled","budget_tokens":2000},"max_tokens":4000,` + tools + `
			{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"a"},{"type":"tool_use","id":"b"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"go on"}]}]}`, nil},
		{"messages: no result", "anthropic", "", `{` + tools + `{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}]}`, []string{"tool-result-missing"}},
		{"messages: a late result", "anthropic", "", `{` + tools + `{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":"Well?"},
			{"role":"assistant","content":"Hm."},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, []string{"tool-result-missing"}},
		{"messages: no call", "anthropic", "", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, []string{"tool-call-missing"}},
		{"messages: an id twice", "anthropic", "", `{` + tools + `{"role":"assistant","content":[{"type":"tool_use","id":"a"},{"type":"tool_use","id":"a"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}]}`, []string{"tool-call-missing", "duplicate-call-id"}},
		{"messages: an empty text", "anthropic", "", `{"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, []string{"empty-content"}},
		{"messages: an empty message", "anthropic", "", `{` + tools + `{"role":"assistant","content":[]}]}`, []string{"empty-content"}},
		{"messages: the model first", "anthropic", "", `{"messages":[{"role":"assistant","content":"Hi."}]}`, []string{"first-message"}},
		{"messages: nothing", "anthropic", "", `{"messages":[],"system":"Be brief."}`, []string{"first-message"}},
		{"messages: a loop without its thought", "anthropic", "", `{"thinking":{"type":"enabled","budget_tokens":2000},` + tools + `{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, []string{"thinking-first"}},
		{"messages: an old loop without its thought", "anthropic", "", `{"thinking":{"type":"enabled","budget_tokens":2000},` + tools + `{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":"Rain."},{"role":"user","content":"Thanks."}]}`, nil},
		{"messages: an unsigned thought", "anthropic", "", `{` + tools + `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Rain."}]}]}`, []string{"thinking-unsigned"}},
		{"messages: too large a budget", "anthropic", "", `{"thinking":{"type":"enabled","budget_tokens":4000},"max_tokens":4000,"messages":[{"role":"user","content":"Hi."}]}`, []string{"budget-over-limit"}},

		{"chat: a whole loop", "deepseek", "", `{` + tools + `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a"},{"id":"b"}]},
			{"role":"tool","tool_call_id":"a","content":"4"},{"role":"tool","tool_call_id":"b","content":""}]}`, nil},
		{"chat: no result", "openai", "", `{` + tools + `{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user","content":"Well?"}]}`, []string{"tool-result-missing"}},
		{"chat: no call", "openai", "", `{` + tools + `{"role":"tool","tool_call_id":"a","content":"4"}]}`, []string{"tool-call-missing"}},
		{"chat: an empty message", "openai", "", `{` + tools + `{"role":"assistant","content":""}]}`, []string{"empty-content"}},
		{"chat: a loop without its thought", "kimi", "", `{` + tools + `{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a","content":"4"}]}`, []string{"reasoning-content-missing"}},
		{"chat: a loop that nobody minds", "openai", "", `{` + tools + `{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a","content":"4"}]}`, nil},

		{"responses: a whole loop", "openai-responses", "", `{"store":false,"input":[{"role":"user","content":"Weather?"},{"type":"reasoning","summary":[],"encrypted_content":"e"},
			{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"4"}]}`, nil},
		{"responses: no result", "openai-responses", "", `{"input":[{"role":"user","content":"Weather?"},{"type":"function_call","call_id":"a"}]}`, []string{"tool-result-missing"}},
		{"responses: a thought alone", "openai-responses", "", `{"input":[{"type":"reasoning","summary":[]},{"role":"user","content":"Well?"}]}`, []string{"reasoning-without-item"}},
		{"responses: no summary", "openai-responses", "", `{"input":[{"type":"reasoning"},{"role":"assistant","content":"Rain."}]}`, []string{"summary-missing"}},
		{"responses: an id that is not stored", "openai-responses", "", `{"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"assistant","content":"Rain."}]}`, []string{"item-id-not-stored"}},

		{"gemini: a whole loop", "gemini", "gemini-3-pro", `{"contents":[{"role":"user","parts":[{"text":"Weather?"}]},{"role":"model","parts":[{"functionCall":{"name":"w"},"thoughtSignature":"s"},{"functionCall":{"name":"w"}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"w"}},{"functionResponse":{"name":"w"}}]}]}`, nil},
		{"gemini: no signature", "gemini", "gemini-3-pro", `{"contents":[{"role":"user","parts":[{"text":"Weather?"}]},{"role":"model","parts":[{"functionCall":{"name":"w"}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"w"}}]}]}`, []string{"thought-signature-missing"}},
		{"gemini: no signature, and no need", "gemini", "gemini-2.5-pro", `{"contents":[{"role":"user","parts":[{"text":"Weather?"}]},{"role":"model","parts":[{"functionCall":{"name":"w"}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"w"}}]}]}`, nil},
		{"gemini: nothing", "gemini", "", `{"contents":[]}`, []string{"no-contents"}},

		{"converse: no result", "converse", "", `{"messages":[{"role":"user","content":[{"text":"Weather?"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a"}}]}]}`, []string{"tool-result-missing"}},
		{"converse: the model first", "converse", "", `{"messages":[{"role":"assistant","content":[{"text":"Hi."}]}]}`, []string{"first-message"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := Open(c.provider, Config{Model: c.model})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range client.Check(&llm.Request{Body: []byte(c.body)}) {
				got = append(got, p.Rule)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("rules %v, want %v", got, c.want)
			}
		})
	}
}

func TestEveryRuleNamesItsEvidence(t *testing.T) {
	lists := [][]wire.Rule{wire.CommonRules}
	for _, d := range dialects {
		lists = append(lists, d.Rules)
		if d.Outline == nil {
			t.Errorf("dialect %s has no outline: the rules for tool calls see nothing of it", d.Name)
		}
	}
	for _, list := range lists {
		seen := map[string]bool{}
		for _, r := range list {
			if r.Name == "" || r.Evidence == "" || r.Find == nil || seen[r.Name] {
				t.Errorf("rule %+v", r)
			}
			seen[r.Name] = true
		}
	}
}

// TestMessagesEncodesBlocksOfOtherDialects: a seal of another model inside a tool loop,
// and text that is not UTF-8, are named with their place.
func TestMessagesEncodesBlocksOfOtherDialects(t *testing.T) {
	client, err := Open("anthropic", Config{Model: "claude-sonnet-4-5"})
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(minted string) content.Block {
		form := content.Form{Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: "s", Minted: minted}}
		return content.Reasoning{Wire: form.Wire(), Text: "hm"}
	}
	req := &llm.Request{Messages: []content.Message{
		{Role: content.RoleAssistant, Blocks: []content.Block{sealed("chat/o3")}}, // of a turn that is over
		{Role: content.RoleUser, Blocks: []content.Block{content.User("a\xff")}},
		{Role: content.RoleAssistant, Blocks: []content.Block{sealed("messages/claude-opus-4-1"), sealed("gemini/gemini-3-pro")}},
	}}
	if req.Body, err = client.Encode(req); err != nil {
		t.Fatal(err)
	}
	places := map[string]llm.Place{}
	for _, p := range client.Check(req) {
		if p.Warning {
			places[p.Rule] = p.Block
		}
	}
	if len(places) != 2 || places["seal-of-another-model"] != (llm.Place{Message: 3, Block: 2}) || places["not-utf8"] != (llm.Place{Message: 2, Block: 1}) {
		t.Errorf("warnings at %v", places)
	}
}

// TestEveryBlockIsSentOrReported: in every dialect a block of any kind is in the request, or
// check says that it is not. Kinds that are added are held to it too.
func TestEveryBlockIsSentOrReported(t *testing.T) {
	const words = "xyzzy"
	foreign := content.Form{Dialect: "another", Type: "x"}.Wire()
	blocks := []content.Block{
		content.Native{Wire: foreign, JSON: `{"type":"x","text":"` + words + `"}`},
		content.ToolCall{Wire: foreign, CallID: "c1", Name: "search", Arguments: `{"q":"` + words + `"}`, Server: true},
		content.ToolResult{Wire: foreign, CallID: "c1", Text: words, Server: true},
		content.Media{Of: content.KindImage, URL: "https://example.com/" + words + ".png"},
		content.Media{Of: content.KindFile, URL: "https://example.com/" + words + ".pdf"},
		content.Media{Of: content.KindFile, MediaType: "application/zip", Name: words, Data: "PK\x03\x04"},
	}
	for _, k := range content.Kinds() {
		b, err := content.WithText(content.EmptyBlock(k), words)
		if err == nil && k != content.KindNative && k != content.KindToolResult { // those are above, or need a call
			blocks = append(blocks, b)
		}
	}
	unsent := map[content.Kind]bool{}
	for _, name := range Dialects() {
		client, err := Open(name, Config{Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			roles := []content.Role{content.RoleOf(b), content.RoleUser, content.RoleAssistant}
			if b.Kind().Traits().Private {
				roles = append(roles, content.RoleSystem)
			}
			for _, role := range roles {
				req := &llm.Request{Messages: []content.Message{
					{Role: content.RoleUser, Blocks: []content.Block{content.User("Go.")}},
					{Role: role, Blocks: []content.Block{b, b}},
					{Role: content.RoleAssistant, Blocks: []content.Block{content.Assistant("Gone.")}},
				}}
				if req.Body, err = client.Encode(req); err != nil {
					t.Fatal(err)
				}
				sent, said := strings.Contains(string(req.Body), words) || strings.Contains(string(req.Body), "UEsDBA"), 0
				for _, p := range client.Check(req) {
					if p.Rule == "block-not-sent" && p.Warning && p.Block == (llm.Place{Message: 2, Block: 1}) && strings.Contains(p.Message, "(and 1 more ") {
						said++
					}
				}
				if sent && b.Kind().Traits().Private {
					t.Errorf("%s: a %s, which is private, is sent with the role %s: %s", name, b.Kind(), role, req.Body)
				}
				if unsent[b.Kind()] = unsent[b.Kind()] || !sent; sent == (said > 0) || said > 1 {
					t.Errorf("%s: a %s said by %s is sent: %v, and said to be left out %d times: %s", name, b.Kind(), role, sent, said, req.Body)
				}
			}
		}
	}
	if !unsent[content.KindNote] || !unsent[content.KindNative] || unsent[content.KindUser] {
		t.Errorf("kinds that are not sent: %v", unsent)
	}
}
