package fakeprovider_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/fakeprovider"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// bodies are requests with a tool, the plan "list" and reasoning, in each dialect.
var bodies = map[string]struct{ path, body string }{
	"messages":  {"/v1/messages", `{"model":"m","stream":STREAM,"thinking":{"type":"enabled"},"tools":[{"name":"Bash","input_schema":{"properties":{"command":{}}}}],"messages":[{"role":"user","content":[{"type":"text","text":"PLAN:list please"}]}]}`},
	"responses": {"/v1/responses", `{"model":"m","stream":STREAM,"reasoning":{"effort":"low"},"tools":[{"type":"function","name":"shell_command","parameters":{"properties":{"command":{}}}}],"input":"PLAN:list please"}`},
	"chat":      {"/v1/chat/completions", `{"model":"m","stream":STREAM,"tools":[{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{}}}}}],"messages":[{"role":"user","content":"PLAN:list please"}]}`},
	"gemini":    {"/v1beta/models/m:", `{"tools":[{"functionDeclarations":[{"name":"run_shell_command","parameters":{"properties":{"command":{}}}}]}],"contents":[{"role":"user","parts":[{"text":"PLAN:list please"}]}]}`},
}

func TestResponsesCanBeDecoded(t *testing.T) {
	provider := fakeprovider.New(fakeprovider.Options{})
	server := httptest.NewServer(provider)
	defer server.Close()
	for api, q := range bodies {
		for _, stream := range []string{"true", "false"} {
			path := q.path
			if api == "gemini" {
				path += map[string]string{"true": "streamGenerateContent?alt=sse", "false": "generateContent"}[stream]
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(strings.ReplaceAll(q.body, "STREAM", stream)))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err := res.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s: %v, status %d: %s", api, err, res.StatusCode, body)
			}
			if sent := provider.Sent(); !bytes.Equal(sent[len(sent)-1], body) {
				t.Errorf("%s: Sent differs from what arrived", api)
			}
			got, err := llm.Collect(providers.Decode(api, api, "m", bytes.NewReader(body), llm.FramingAuto), nil)
			if err != nil || got.Incomplete || len(got.Blocks) != 2 {
				t.Fatalf("%s, stream %s: %v, %+v", api, stream, err, got)
			}
			reasoning, ok := got.Blocks[0].(content.Reasoning)
			call, called := got.Blocks[1].(content.ToolCall)
			if !ok || !called || !strings.Contains(reasoning.String(), "I choose what comes next") || !strings.Contains(call.Arguments, `"ls"`) {
				t.Errorf("%s, stream %s: blocks %#v", api, stream, got.Blocks)
			}
		}
	}
}
