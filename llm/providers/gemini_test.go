package providers

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

// geminiChunk is one event of a stream: parts, and what else the candidate says.
func geminiChunk(parts, more string) string {
	return sseEvent(`{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + more + `}],"responseId":"r","modelVersion":"gemini-x"}`)
}

func TestGeminiClientConforms(t *testing.T) {
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":16}`
	parts := []string{`{"text":"Which one?","thought":true}`, `{"text":"The blue one."}`, `{"functionCall":{"name":"buy","args":{"n":1},"id":"t1"},"thoughtSignature":"U0VBTA=="}`}
	llmtest.Run(t, llmtest.Dialect{
		JSON: `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"finishReason":"STOP"}],"responseId":"r","modelVersion":"gemini-x",` + usage + `}`,
		Stream: []string{
			geminiChunk(`{"text":"Which ","thought":true}`, ""), geminiChunk(`{"text":"one?","thought":true}`, ""),
			geminiChunk(`{"text":"The blue "}`, ""), geminiChunk(`{"text":"one."}`, ""), geminiChunk(parts[2], ""),
			sseEvent(`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"responseId":"r","modelVersion":"gemini-x",` + usage + `}`),
		},
		Broken: sseEvent(`{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`),
		Refuse: `{"error":{"code":400,"message":"API key not valid: KEY","status":"INVALID_ARGUMENT"}}`,
	}, func(base, key string) llm.Client { return googleClient(t, base, "google", key) })
}

func TestInteractionsClientConforms(t *testing.T) {
	const about = `"id":"v1","object":"interaction","model":"gemini-x"`
	const usage = `"usage":{"total_input_tokens":9,"total_output_tokens":4,"total_thought_tokens":16}`
	step := func(i int, text string) string { return fmt.Sprintf(`{"index":%d,%s}`, i, text) }
	llmtest.Run(t, llmtest.Dialect{
		Path: "/interactions",
		JSON: `{` + about + `,"status":"requires_action",` + usage + `,"steps":[{"type":"thought","signature":"U0VBTA==","summary":[{"type":"text","text":"Which one?"}]},
			{"type":"model_output","content":[{"type":"text","text":"The blue one."}]},{"type":"function_call","id":"t1","name":"buy","arguments":{"n":1}}]}`,
		Stream: []string{
			sseEvent(`{"event_type":"interaction.created","interaction":{` + about + `,"status":"in_progress"}}`),
			sseEvent(step(0, `"event_type":"step.start","step":{"type":"thought"}`)),
			sseEvent(step(0, `"event_type":"step.delta","delta":{"type":"thought_summary","content":{"type":"text","text":"Which one?"}}`)),
			sseEvent(step(0, `"event_type":"step.delta","delta":{"type":"thought_signature","signature":"U0VBTA=="}`)),
			sseEvent(step(0, `"event_type":"step.stop"`)),
			sseEvent(step(1, `"event_type":"step.start","step":{"type":"model_output"}`)),
			sseEvent(step(1, `"event_type":"step.delta","delta":{"type":"text","text":"The blue "}`)),
			sseEvent(step(1, `"event_type":"step.delta","delta":{"type":"text","text":"one."}`)),
			sseEvent(step(1, `"event_type":"step.stop"`)),
			sseEvent(step(2, `"event_type":"step.start","step":{"type":"function_call","id":"t1","name":"buy","arguments":{},"signature":""}`)),
			sseEvent(step(2, `"event_type":"step.delta","delta":{"type":"arguments_delta","arguments":"{\"n\":1}"}`)),
			sseEvent(step(2, `"event_type":"step.stop"`)),
			sseEvent(`{"event_type":"interaction.completed","interaction":{` + about + `,"status":"requires_action",` + usage + `}}`),
		},
		Broken: sseEvent(`{"event_type":"error","error":{"code":"unavailable","message":"overloaded"}}`),
		Refuse: `{"error":{"code":400,"message":"API key not valid: KEY","status":"INVALID_ARGUMENT"}}`,
	}, func(base, key string) llm.Client { return googleClient(t, base, "interactions", key) })
}

func googleClient(t *testing.T, base, provider, key string) *Client {
	t.Helper()
	c, err := Open(provider, Config{BaseURL: base, APIKey: key, Model: "gemini-x"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGoogleEndpoints: the model is in the path, the key in a header of
// Google's own, and a stream is asked for as one.
func TestGoogleEndpoints(t *testing.T) {
	const answer = `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`
	s := llmtest.Start(t, llmtest.Exchange{Body: answer}, llmtest.Exchange{Body: answer}, llmtest.Exchange{Body: `{"status":"completed","steps":[]}`})
	for i, provider := range []string{"google", "google", "interactions"} {
		c := googleClient(t, s.URL()+"/v1beta?tenant=a", provider, "k-0123456789")
		if _, err := c.Generate(t.Context(), &llm.Request{Stream: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"/v1beta/models/gemini-x:generateContent?tenant=a", "/v1beta/models/gemini-x:streamGenerateContent?tenant=a&alt=sse", "/v1beta/interactions?tenant=a",
	}
	for i, r := range s.Requests() {
		if have := r.Path + "?" + r.Query; have != want[i] {
			t.Errorf("asked at %s, want %s", have, want[i])
		}
		if r.Header.Get("X-Goog-Api-Key") != "k-0123456789" || r.Header.Get("Authorization") != "" {
			t.Errorf("the key is sent in %v", r.Header)
		}
	}
	if have := s.Requests()[2].Header.Get("Api-Revision"); have != "2026-05-20" {
		t.Errorf("revision %q", have)
	}
	c, err := Open("gemini", Config{BaseURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("asked without a model: %v", err)
	}
	h := http.Header{}
	proxy := wire.Target{Provider: "proxy"}
	dialectNamed("gemini").Sign(h, proxy, "k")
	dialectNamed("interactions").Sign(h, proxy, "k")
	if h.Get("Authorization") != "Bearer k" || h.Get("X-Goog-Api-Key") != "k" {
		t.Errorf("a server that only speaks the format gets %v", h)
	}
	if path := dialectNamed("gemini").Path("tunedModels/mine", false); path != "/tunedModels/mine:generateContent" {
		t.Errorf("path %s", path)
	}
}

// TestGeminiIsAskedAgainWithoutThoughts: a model that has none refuses to be asked
// for them, in two ways.
func TestGeminiIsAskedAgainWithoutThoughts(t *testing.T) {
	for _, message := range []string{
		"Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is enabled.", "Thinking is not enabled for models/gemini-x",
	} {
		s := llmtest.Start(t,
			llmtest.Exchange{Status: 400, Body: `{"error":{"code":400,"message":"` + message + `","status":"INVALID_ARGUMENT"}}`},
			llmtest.Exchange{Body: `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`})
		reply, err := googleClient(t, s.URL(), "google", "k-0123456789").Generate(t.Context(), &llm.Request{})
		if err != nil || reply.Text() != "hi" {
			t.Errorf("%q: %v", message, err)
		}
		if asked := s.Requests(); bytes.Contains(asked[1].Body, []byte("includeThoughts")) {
			t.Errorf("asked again with %s", asked[1].Body)
		}
	}
}

func TestGoogleRetryDelay(t *testing.T) {
	const refusal = `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"75.5s"}]}}`
	s := llmtest.Start(t, llmtest.Exchange{Status: 429, Body: refusal})
	_, err := googleClient(t, s.URL(), "google", "k-0123456789").Generate(t.Context(), &llm.Request{})
	if e := wantAPIError(t, err); e.RetryAfter != 75500*time.Millisecond || e.Type != "RESOURCE_EXHAUSTED" || e.Status != 429 {
		t.Errorf("%+v", e)
	}
	_, err = llm.Collect(Decode("gemini", "google", "", strings.NewReader("["+refusal+"]"), llm.FramingAuto), nil)
	if e := wantAPIError(t, err); e.RetryAfter != 75500*time.Millisecond {
		t.Errorf("%+v", e)
	}
}

// TestGeminiUnusualStreams: what no recording has, and what none may break.
func TestGeminiUnusualStreams(t *testing.T) {
	const stop = `,"finishReason":"STOP"`
	for name, c := range map[string]struct {
		body, want string // the blocks in words
		err        error
	}{
		"a prompt that is refused": {sseEvent(`{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"no"}}`), "", &llm.APIError{}},
		"nothing at all":           {"", "", llm.ErrTruncated},
		"no answer":                {`{"hello":1}`, "", llm.ErrProtocol},
		"no candidates":            {`{"usageMetadata":{"promptTokenCount":3}}`, "", nil},
		"no reason to end":         {geminiChunk(`{"text":"half"}`, ""), "assistant half ", llm.ErrTruncated},
		"another candidate":        {sseEvent(`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},{"index":0,"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}`), "assistant yes ", nil},
		"a chunk after the end":    {geminiChunk(`{"text":"a"}`, stop) + geminiChunk(`{"text":"b"}`, ""), "assistant a |assistant b ", nil},
		"sealed words are apart": {
			geminiChunk(`{"text":"a"},{"text":"b"},{"text":"c","thoughtSignature":"S"},{"text":"d"},{"text":"e","thought":true},{"text":"f","thought":true,"thoughtSignature":"T"},{"text":"g","x":1}`, stop),
			"assistant ab |assistant c S|assistant d |reasoning e |reasoning f T|assistant g ", nil,
		},
		"a call that breaks off": {
			geminiChunk(`{"functionCall":{"name":"f","willContinue":true}}`, "") + geminiChunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}`, ""),
			"", llm.ErrTruncated,
		},
		"a call that another ends": {
			geminiChunk(`{"functionCall":{"name":"f","args":{"b":1},"willContinue":true}}`, "") + geminiChunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x"}],"willContinue":true}}`, "") +
				geminiChunk(`{"functionCall":{},"thoughtSignature":"late"}`, "") + geminiChunk(`{"functionCall":{}},{"functionCall":{"name":"g","willContinue":true}},{"functionCall":{"name":"h","args":{}}}`, stop),
			`tool-call {"b":1,"a":"x"} late|tool-call {} |tool-call {} `, nil,
		},
		"an index out of bounds": {geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[9000000]","numberValue":1}],"willContinue":true}}`, ""), "", llm.ErrProtocol},
		"too deep":               {geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$`+strings.Repeat("[0]", 200)+`","numberValue":1}],"willContinue":true}}`, ""), "", llm.ErrProtocol},
		"no path":                {geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"a","numberValue":1}],"willContinue":true}}`, ""), "", llm.ErrProtocol},
		"a path with a hole":     {geminiChunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[1]['b c'][\"d.e\"]","boolValue":true}]}}`, stop), `tool-call {"a":[null,{"b c":{"d.e":true}}]} `, nil},
		"a call and its own": {
			geminiChunk(`{"functionCall":{"name":"f","willContinue":true,"score":1},"partMetadata":{"k":1}}`, "") + geminiChunk(`{"functionCall":{}}`, stop), `tool-call {} `, nil,
		},
		"base64 of another kind": {geminiChunk(`{"inlineData":{"mimeType":"image/png","data":"-_-_"}}`, stop), `native {"inlineData":{"mimeType":"image/png","data":"-_-_"}} `, nil},
	} {
		reply, _, err := (&recording{API: "gemini", Provider: "google"}).read(strings.NewReader(c.body))
		var have []string
		for _, b := range reply.Blocks {
			have = append(have, b.Kind().String()+" "+b.String()+" "+b.Form().Seal.Data)
		}
		if strings.Join(have, "|") != c.want {
			t.Errorf("%s: blocks %q, want %q", name, have, c.want)
		}
		if _, api := c.err.(*llm.APIError); api {
			if e := wantAPIError(t, err); e.Type != "OTHER" || e.Message != "no" {
				t.Errorf("%s: %+v", name, e)
			}
		} else if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
	}
}

// TestGeminiMakesIdsForCallsWithout: the same ones each time, another for each
// call, and none of them goes back.
func TestGeminiMakesIdsForCallsWithout(t *testing.T) {
	const body = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"responseId":"R"}`
	r := &recording{API: "gemini", Provider: "google"}
	ids := map[string]bool{}
	for _, text := range []string{body, body, strings.Replace(body, `"R"`, `"R2"`, 1)} {
		reply, _, err := r.read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range reply.ToolCalls() {
			ids[c.CallID] = true
		}
		if part := replayOf(r.target(), reply.Blocks); part.Get("parts").At(1).Get("functionCall", "id") != nil {
			t.Errorf("a made id goes back: %s", part)
		}
	}
	if len(ids) != 4 || ids[""] {
		t.Errorf("ids %v, want 4", ids)
	}
}

// FuzzGemini reads any bytes as a response of either dialect: the same however
// they are cut, in blocks that can be stored and sent back.
func FuzzGemini(f *testing.F) {
	for _, r := range recordings(f, "testdata/gemini", func(*recording) bool { return true }) {
		f.Add(r.body, true)
	}
	for _, r := range recordings(f, "testdata/interactions", func(*recording) bool { return true }) {
		f.Add(r.body, false)
	}
	f.Fuzz(func(t *testing.T, body []byte, parts bool) {
		r := &recording{API: "gemini", Provider: "google", Model: "gemini-test"}
		if !parts {
			r.API = "gemini-interactions"
		}
		r.checkInvariants(t, body, nil)
		reply, _, _ := r.read(bytes.NewReader(body))
		tt := r.target()
		req := &llm.Request{Messages: []content.Message{{Role: content.RoleAssistant, Blocks: reply.Blocks}}}
		if body, err := tt.Encode(req); err != nil {
			t.Fatal(err)
		} else if _, err := rawjson.Parse(body); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
	})
}
