package recorder

import (
	"net/http"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm/providers"
)

// TestIdentities reads the identities of requests as the clients send them, and names their branches.
func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		branch string
	}{
		"claude code": {
			map[string]string{"User-Agent": "claude-cli/2.1.197 (external, sdk-cli)", "X-Claude-Code-Session-Id": "8c84ee4f-4fe8-48b3-b075-0dd8e5c8077e"},
			`{"tools":[{}]}`, "proxy/claude-code/8c84ee4f",
		},
		"claude code, body only": {
			map[string]string{"User-Agent": "claude-cli/2"},
			`{"tools":[{}],"metadata":{"user_id":"{\"session_id\":\"8c84ee4f-4fe8-48b3-b075-0dd8e5c8077e\"}"}}`, "proxy/claude-code/8c84ee4f",
		},
		"sub-agent": {
			map[string]string{"User-Agent": "claude-cli/2", "X-Claude-Code-Session-Id": "8c84ee4f-4fe8-48b3-b075-0dd8e5c8077e", "X-Claude-Code-Agent-Id": "aad7beba1c2a8c1d1"},
			`{"tools":[{}]}`, "proxy/claude-code/8c84ee4f/agent-aad7beba",
		},
		"title": {
			map[string]string{"User-Agent": "claude-cli/2", "X-Claude-Code-Session-Id": "8c84ee4f-4fe8-48b3-b075-0dd8e5c8077e"},
			`{"tools":[],"system":"Generate a concise title for it","output_config":{"format":{}}}`, "proxy/claude-code/8c84ee4f/side-title",
		},
		"codex, whose ids begin with the time": {
			map[string]string{"User-Agent": "codex_exec/0.169.0", "Session-Id": "01a205f5-a15f-70c0-b601-2e1535a4d7e4", "Thread-Id": "01a205f5-a3c3-7553-8121-58f8269ebb73"},
			`{}`, "proxy/codex/35a4d7e4/agent-269ebb73",
		},
		"opencode": {
			map[string]string{"User-Agent": "opencode/1.18", "X-Session-Id": "ses_dfa0ee6abffel91q9rYxTq21Yd", "X-Parent-Session-Id": "ses_dfa101dbfffeP1pT6BmitvwuMg"},
			`{"tools":[{}]}`, "proxy/opencode/mitvwuMg/agent-YxTq21Yd",
		},
		"pi":                {map[string]string{"User-Agent": "OpenAI/JS 6.26.0", "Session_id": "01a205ee-2323-710d-bdf4-1c0697abfd79"}, `{}`, "proxy/openai-js/97abfd79"},
		"conversation":      {nil, `{"conversation":{"id":"conv_0123456789"}}`, "proxy/client/23456789"},
		"named by a header": {map[string]string{"User-Agent": "x/1", "X-Tract-Session": "nightly run/7"}, `{"conversation":"conv_1"}`, "proxy/x/nightly"},
		"a shared cache key is no session": {
			map[string]string{"User-Agent": "OpenAI/Python 1.0"}, `{"prompt_cache_key":"app","metadata":{"user_id":"ada"}}`, "",
		},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h[name] = []string{value}
		}
		req, err := providers.DecodeRequest("messages", "", rawjson.NewObject("messages", rawjson.Value("[]")).Merge(rawjson.Value(c.body)).Bytes())
		if err != nil {
			t.Fatal(err)
		}
		identity := readIdentity(h, req)
		have := ""
		if identity.session != "" {
			have = identity.branchName("proxy/", false)
		}
		if have != c.branch {
			t.Errorf("%s: %q, want %q", name, have, c.branch)
		}
	}
}
