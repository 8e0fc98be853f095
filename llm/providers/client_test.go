package providers

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

const (
	aKey     = "sk-ant-test-0123456789/+abc"
	anAnswer = `{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Blue."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`
)

// messagesEvents is an answer with a reasoning block, a text and a call, as it streams.
var messagesEvents = []string{
	sseEvent(`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`),
	sseEvent(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`),
	sseEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Which "}}`),
	sseEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"one?"}}`),
	sseEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"U0VBTA=="}}`),
	sseEvent(`{"type":"content_block_stop","index":0}`),
	sseEvent(`{"type":"ping"}`),
	sseEvent(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`),
	sseEvent(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"The blue "}}`),
	sseEvent(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"one."}}`),
	sseEvent(`{"type":"content_block_stop","index":1}`),
	sseEvent(`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"buy","input":{}}}`),
	sseEvent(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}`),
	sseEvent(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}`),
	sseEvent(`{"type":"content_block_stop","index":2}`),
	sseEvent(`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}`),
	sseEvent(`{"type":"message_stop"}`),
}

func sseEvent(data string) string { return "data: " + data + "\n\n" }

func TestMessagesClientConforms(t *testing.T) {
	llmtest.Run(t, llmtest.Dialect{
		Path:   "/v1/messages",
		Stream: messagesEvents,
		JSON: `{"id":"m1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"Which one?","signature":"U0VBTA=="},
			{"type":"text","text":"The blue one."},{"type":"tool_use","id":"t1","name":"buy","input":{"n":1}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":20}}`,
		Broken: sseEvent(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		Refuse: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key: KEY"},"request_id":"req_1"}`,
	}, func(base, key string) llm.Client {
		c, err := Open("anthropic", Config{BaseURL: base, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

// ask opens a client for a server and asks it one thing.
func ask(t *testing.T, base string, c Config) (*llm.Response, error) {
	t.Helper()
	c.BaseURL, c.Model = base, "claude-x"
	client, err := Open("anthropic", c)
	if err != nil {
		t.Fatal(err)
	}
	return client.Generate(t.Context(), &llm.Request{Messages: []content.Message{message(content.RoleUser, content.User("Colour?"))}})
}

func wantAPIError(t *testing.T, err error) *llm.APIError {
	t.Helper()
	var e *llm.APIError
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an *llm.APIError", err)
	}
	return e
}

func TestRequestHeadersOfEachFormat(t *testing.T) {
	check := func(r *llmtest.Request) error {
		h := r.Header
		if h.Get("X-Api-Key") != aKey || h.Get("Authorization") != "" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Anthropic-Beta") != "b1" || h.Get("User-Agent") != "mine" {
			return fmt.Errorf("headers %v", h)
		}
		return nil
	}
	s := llmtest.Start(t, llmtest.Exchange{
		Path: "/proxy/v1/messages", Check: check, Body: anAnswer,
		WantJSON: `{"model":"claude-x","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"Colour?"}]}]}`,
	})
	reply, err := ask(t, s.URL()+"/proxy/v1/", Config{APIKey: aKey + "\n", Headers: map[string]string{"anthropic-beta": "b1", "User-Agent": "mine"}})
	if err != nil || reply.Text() != "Blue." {
		t.Fatal(reply, err)
	}
	if string(reply.Raw) != anAnswer || string(reply.Sent) != string(s.Requests()[0].Body) || reply.From.Model != "claude-x" || reply.From.Dialect != "messages" || "http://"+reply.From.Endpoint != s.URL() {
		t.Errorf("%+v", reply)
	}
}

func TestRequestFollowsTheBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://h": "http://h/v1/messages", "http://h/v1": "http://h/v1/messages", "http://h/anthropic/": "http://h/anthropic/v1/messages",
		"http://h/v1/messages": "http://h/v1/messages", "http://h/v1?api-version=2": "http://h/v1/messages?api-version=2",
	} {
		c, err := Open("messages", Config{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.endpoint(c.target, true).String(); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
	}
}

func TestAuthSignsEachAttempt(t *testing.T) {
	s := llmtest.Start(t,
		llmtest.Exchange{Status: 500, Header: map[string]string{"Retry-After-Ms": "1"}},
		llmtest.Exchange{Status: 401, Body: `{"error":"token second-token-value is not known"}`})
	token := "first"
	_, err := ask(t, s.URL(), Config{Auth: func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token+"-token-value")
		token = "second"
		return nil
	}})
	if e := wantAPIError(t, err); e.Message != "token [key] is not known" || strings.Contains(string(e.Raw), "second-token") {
		t.Errorf("%+v", e)
	}
	if got := s.Requests()[1].Header.Get("Authorization"); got != "Bearer second-token-value" {
		t.Error(got)
	}
	if _, err := ask(t, s.URL(), Config{Auth: func(*http.Request) error { return errors.New("no token") }}); err == nil || !strings.Contains(err.Error(), "authorize: no token") {
		t.Error(err)
	}
}

func TestKeyIsRequiredAtTheVendorsHostOnly(t *testing.T) {
	req := &llm.Request{Settings: llm.Settings{Model: "m"}}
	c, err := Open("anthropic", Config{BaseURL: "https://API.anthropic.com"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Generate(t.Context(), req)
	var hint interface{ Hint() string }
	if !errors.Is(err, llm.ErrNoKey) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") || !errors.As(err, &hint) || hint.Hint() != "set ANTHROPIC_API_KEY" {
		t.Error(err)
	}
	s := llmtest.Start(t, llmtest.Exchange{Body: anAnswer})
	if _, err := ask(t, s.URL(), Config{}); err != nil {
		t.Error(err)
	}
	if s.Requests()[0].Header.Get("X-Api-Key") != "" {
		t.Error("an empty key was sent")
	}
}

func TestOpenReportsWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"nobody", Config{}, `provider "nobody" is not known`},
		{"nobody", Config{BaseURL: "http://127.0.0.1:1"}, `provider "nobody" is not known`},
		{"", Config{}, `provider "" is not known`},
		{"anthropic", Config{Dialect: "morse"}, `dialect "morse": want one of`},
		{"anthropic", Config{BaseURL: "api.anthropic.com"}, "want http://HOST"},
		{"anthropic", Config{BaseURL: "ftp://h"}, "want http://HOST"},
	} {
		if _, err := Open(c.name, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	c, err := Open("messages", Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), "no base URL") {
		t.Error(err)
	}
	if c, err = Open("mine", Config{Dialect: "MESSAGES", BaseURL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Error(err)
	}
	if a := c.Address(); a.Provider != "mine" || a.Dialect != "messages" || a.Endpoint != "127.0.0.1:1" || a.Encoder == 0 || !c.NeedsReasoningInToolLoop() {
		t.Errorf("%+v", a)
	}
}

// TestOpenRefusesAMisspeltProvider: whatever base URL is given, what was meant is not
// spoken in the generic form of another.
func TestOpenRefusesAMisspeltProvider(t *testing.T) {
	for given, want := range map[string]string{
		"antropic": "anthropic", "ANTHROPC": "anthropic", "open_ai": "openai", "deepsek": "deepseek", "openai_compatable": "openai-compatible",
		"my-own-server": "", "x": "", "here": "",
	} {
		_, err := Open(given, Config{BaseURL: "http://127.0.0.1:1/v1"})
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Name != given || unknown.Nearest != want {
			t.Errorf("%s: %v, %+v; want %q", given, err, unknown, want)
			continue
		}
		if hint := unknown.Hint(); !strings.Contains(hint, "openai-compatible") || want != "" && !strings.HasPrefix(hint, "did you mean "+want+"?") {
			t.Errorf("%s: hint %q", given, hint)
		}
	}
	for _, name := range []string{"", "openai-compatible", "chat", "OpenAI_Compatible"} {
		c, err := Open(name, Config{BaseURL: "http://127.0.0.1:1/v1"})
		if err != nil || c.Address().Dialect != "chat" || !c.NeedsReasoningInToolLoop() {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestDecodeAndReplayWithoutAClient reads and writes without a client, a key or a server.
func TestDecodeAndReplayWithoutAClient(t *testing.T) {
	body := strings.Join(messagesEvents, "")
	reply, err := llm.Collect(Decode("messages", "whoever", "claude-x", strings.NewReader(body), llm.FramingSSE), nil)
	if err != nil {
		t.Fatal(err)
	}
	part, err := Replay("", "claude", "claude-x", reply.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	wantJSON(t, part, `{"role":"assistant","content":[{"type":"thinking","thinking":"Which one?","signature":"U0VBTA=="},
		{"type":"text","text":"The blue one."},{"type":"tool_use","id":"t1","name":"buy","input":{"n":1}}]}`)
	if part, err := Replay("messages", "", "glm-5", reply.Blocks[:1]); part != nil || err != nil {
		t.Errorf("a thought that another family sealed goes back as %s, %v", part, err)
	}
	if _, err := llm.Collect(Decode("morse", "", "", strings.NewReader(body), llm.FramingAuto), nil); err == nil || !strings.Contains(err.Error(), `dialect "morse"`) {
		t.Error(err)
	}
	if _, err := Replay("morse", "", "", nil); err == nil {
		t.Error("no error for an unknown dialect")
	}
	c, err := Open("anthropic", Config{APIKey: aKey})
	if err != nil {
		t.Fatal(err)
	}
	again, err := llm.Collect(c.Decode(strings.NewReader(body)), nil)
	if err != nil || len(again.Blocks) != len(reply.Blocks) {
		t.Error(again, err)
	}
}

// TestNoKeyIsPrinted: whoever prints a client or its configuration, on purpose or
// inside of something else, prints no secret.
func TestNoKeyIsPrinted(t *testing.T) {
	config := Config{
		Model: "claude", APIKey: aKey, BaseURL: "https://user:in-the-url@api.example.com/v1?key=in-the-url",
		Headers: map[string]string{"X-Api-Key": aKey},
	}
	c, err := Open("anthropic", config)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		Config Config
		Client *Client
	}
	for _, v := range []any{config, &config, c, *c, []Config{config}, holder{config, c}, []any{c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, aKey) || strings.Contains(text, fmt.Sprintf("%x", aKey)) || strings.Contains(text, "in-the-url") {
				t.Errorf("%s of a %T: %s", verb, v, text)
			}
		}
	}
	if have := fmt.Sprintf("%#v", c); have != "anthropic (messages) at api.example.com" {
		t.Error(have)
	}
	if have := fmt.Sprintf("%+v", config); have != `model "claude", dialect "", host "api.example.com", key true, auth false, 1 headers` {
		t.Error(have)
	}
}

// TestOpenNamesARegionalBaseURL: who has none of its own says what one looks like.
func TestOpenNamesARegionalBaseURL(t *testing.T) {
	for provider, want := range map[string]string{
		"bedrock": "want one like https://bedrock-runtime.REGION.amazonaws.com", "invoke": "https://bedrock-runtime.REGION.amazonaws.com",
		"azure": "https://RESOURCE.openai.azure.com/openai/v1", "snowflake": "no base URL: it has none of its own",
	} {
		c, err := Open(provider, Config{APIKey: aKey, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Generate(t.Context(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", provider, err, want)
		}
	}
}
