package providers

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/framing/framingtest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// smallServers is what servers of the dialects here say, by the provider.
var smallServers = map[string]llmtest.Dialect{
	"bedrock": {
		JSON: `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Which one?","signature":"U0VBTA=="}}},{"text":"The blue one."},
			{"toolUse":{"toolUseId":"t1","name":"buy","input":{"n":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":9,"outputTokens":20}}`,
		Stream: []string{
			string(framingtest.AWSEvent("messageStart", `{"role":"assistant","p":"ab"}`)),
			string(framingtest.AWSEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Which "}}}`)),
			string(framingtest.AWSEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"one?"}}}`)),
			string(framingtest.AWSEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"U0VBTA=="}}}`)),
			string(framingtest.AWSEvent("contentBlockStop", `{"contentBlockIndex":0}`)),
			string(framingtest.AWSEvent("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"The blue one."}}`)),
			string(framingtest.AWSEvent("contentBlockStop", `{"contentBlockIndex":1}`)),
			string(framingtest.AWSEvent("contentBlockStart", `{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t1","name":"buy"}}}`)),
			string(framingtest.AWSEvent("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"n\":1}"}}}`)),
			string(framingtest.AWSEvent("contentBlockStop", `{"contentBlockIndex":2}`)),
			string(framingtest.AWSEvent("messageStop", `{"stopReason":"tool_use"}`)),
			string(framingtest.AWSEvent("metadata", `{"usage":{"inputTokens":9,"outputTokens":20}}`)),
		},
		Broken: string(framingtest.AWSMessage(`{"message":"The model went away"}`, ":message-type", "exception", ":exception-type", "modelStreamErrorException")),
		Refuse: `{"Message":"API Key KEY is not valid"}`,
	},
	"invoke": {
		JSON: `{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"Which one?","signature":"U0VBTA=="},
			{"type":"text","text":"The blue one."},{"type":"tool_use","id":"t1","name":"buy","input":{"n":1}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":20}}`,
		Stream: wrappedForBedrock(messagesEvents),
		Broken: string(framingtest.AWSMessage(`{"message":"Slow down"}`, ":message-type", "exception", ":exception-type", "throttlingException")),
		Refuse: `{"message":"API Key KEY is not valid"}`,
	},
	"cohere": {
		Path: "/chat",
		JSON: `{"id":"c1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Which one?"},{"type":"text","text":"The blue one."}],
			"tool_calls":[{"id":"t1","type":"function","function":{"name":"buy","arguments":"{\"n\":1}"}}]},"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":9,"output_tokens":20}}}`,
		Stream: []string{
			sseEvent(`{"id":"c1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`),
			sseEvent(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`),
			sseEvent(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"Which one?"}}}}`),
			sseEvent(`{"type":"content-end","index":0}`),
			sseEvent(`{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"The blue "}}}}`),
			sseEvent(`{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"one."}}}}`),
			sseEvent(`{"type":"content-end","index":1}`),
			sseEvent(`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t1","type":"function","function":{"name":"buy","arguments":""}}}}}`),
			sseEvent(`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"n\":1}"}}}}}`),
			sseEvent(`{"type":"tool-call-end","index":0}`),
			sseEvent(`{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":9,"output_tokens":20}}}}`),
		},
		Broken: sseEvent(`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"the model fell over"}}`),
		Refuse: `{"id":"x","message":"invalid api token KEY"}`,
	},
	"ollama": {
		Path: "/api/chat",
		JSON: `{"model":"m","created_at":"T","message":{"role":"assistant","content":"The blue one.","thinking":"Which one?","tool_calls":[{"function":{"name":"buy","arguments":{"n":1}}}]},
			"done_reason":"stop","done":true,"prompt_eval_count":9,"eval_count":20}`,
		Stream: []string{
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":"","thinking":"Which "},"done":false}` + "\n",
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":"","thinking":"one?"},"done":false}` + "\n",
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":"The blue "},"done":false}` + "\n",
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":"one."},"done":false}` + "\n",
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"buy","arguments":{"n":1}}}]},"done":false}` + "\n",
			`{"model":"m","created_at":"T","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"prompt_eval_count":9,"eval_count":20}` + "\n",
		},
		Broken: `{"error":"the runner has stopped"}` + "\n",
		Refuse: `{"error":"unauthorized: KEY"}`,
	},
}

// wrappedForBedrock wraps events as Bedrock does.
func wrappedForBedrock(events []string) (list []string) {
	for _, e := range events {
		list = append(list, string(framingtest.AWSChunk(strings.TrimPrefix(strings.TrimSpace(e), "data: "))))
	}
	return list
}

func TestSmallClientsConform(t *testing.T) {
	for provider, server := range smallServers {
		t.Run(provider, func(t *testing.T) {
			llmtest.Run(t, server, func(base, key string) llm.Client {
				c, err := Open(provider, Config{BaseURL: base, APIKey: key})
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
		})
	}
}

// TestEndpointsOfSmallDialects: where each dialect asks, with which key, and how it asks
// for a stream.
func TestEndpointsOfSmallDialects(t *testing.T) {
	arn := "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab%c"
	for _, c := range []struct {
		provider, base, model string
		stream                bool
		path                  string
	}{
		{"bedrock", "", "m.claude-v1:0", false, "/model/m.claude-v1:0/converse"},
		{"bedrock", "/", arn, true, "/model/" + arn + "/converse-stream"},
		{"invoke", "/proxy", "m.claude-v1:0", false, "/proxy/model/m.claude-v1:0/invoke"},
		{"invoke", "", arn, true, "/model/" + arn + "/invoke-with-response-stream"},
		{"cohere", "/v2", "command", true, "/v2/chat"},
		{"cohere", "/v2/chat", "command", false, "/v2/chat"},
		{"ollama", "", "qwen3", false, "/api/chat"},
		{"ollama", "/api", "qwen3", true, "/api/chat"},
		{"ollama", "/v1/", "qwen3", false, "/v1/chat/completions"},
	} {
		s := llmtest.Start(t, llmtest.Exchange{Body: "{}", Path: c.path})
		client, err := Open(c.provider, Config{BaseURL: s.URL() + c.base, APIKey: "sk-the-key", Model: c.model})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Generate(t.Context(), &llm.Request{Messages: []content.Message{message(content.RoleUser, content.User("Hi"))}, Stream: c.stream})
		asked := s.Requests()
		if len(asked) != 1 || asked[0].Header.Get("Authorization") != "Bearer sk-the-key" {
			t.Fatalf("%s %s: %+v", c.provider, c.base, asked)
		}
		client.config.BaseURL = ""
		if u := client.endpoint(client.target, c.stream); c.model == arn && !strings.Contains(u.String(), "profile%2Fab%25c/") {
			t.Errorf("%s: the slash of a model's name is in %s", c.provider, u)
		}
	}
}

// TestOllamaSpeaksTwoDialects: its own API, and beside it one that is compatible with
// others.
func TestOllamaSpeaksTwoDialects(t *testing.T) {
	for _, c := range []struct {
		config            Config
		dialect, endpoint string
	}{
		{Config{}, "ollama", "http://localhost:11434/api/chat"},
		{Config{Dialect: "chat"}, "chat", "http://localhost:11434/v1/chat/completions"},
		{Config{BaseURL: "http://box:1/v1"}, "chat", "http://box:1/v1/chat/completions"},
		{Config{BaseURL: "http://box:1/v1", Dialect: "ollama"}, "ollama", "http://box:1/v1/api/chat"},
		{Config{BaseURL: "https://ollama.com"}, "ollama", "https://ollama.com/api/chat"},
	} {
		client, err := Open("ollama", c.config)
		if err != nil {
			t.Fatal(err)
		}
		if at, u := client.Address(), client.endpoint(client.target, false); at.Dialect != c.dialect || u.String() != c.endpoint {
			t.Errorf("%+v: %s at %s, want %s at %s", c.config, at.Dialect, u, c.dialect, c.endpoint)
		}
	}
}

func TestBedrockErrorTypes(t *testing.T) {
	s := llmtest.Start(t, llmtest.Exchange{
		Status: 400, Header: map[string]string{"X-Amzn-Errortype": "ValidationException:http://internal.amazon.com/"}, Body: `{"Message":"The model is wrong."}`,
	})
	client, err := Open("bedrock", Config{BaseURL: s.URL(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Generate(t.Context(), &llm.Request{Messages: []content.Message{message(content.RoleUser, content.User("Hi"))}})
	if e := wantAPIError(t, err); e.Type != "ValidationException" || e.Message != "The model is wrong." {
		t.Errorf("%+v", e)
	}
}

// TestModelNameCannotChangeThePath: the name of a model may come from the settings of a
// folder that was cloned, and the request carries the user's key.
func TestModelNameCannotChangeThePath(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-2.5-pro":        "/v1beta/models/gemini-2.5-pro:generateContent",
		"tunedModels/mine":      "/v1beta/tunedModels/mine:generateContent",
		"x?key=evil&y=":         "/v1beta/models/x%3Fkey=evil&y=:generateContent",
		"x#y":                   "/v1beta/models/x%23y:generateContent",
		"models/../../upload/x": "/v1beta/models/%2E%2E/%2E%2E/upload/x:generateContent",
	} {
		c, err := Open("gemini", Config{Model: model, BaseURL: "https://host.example/v1beta", APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.endpoint(c.target, false).String(); got != "https://host.example"+want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}
