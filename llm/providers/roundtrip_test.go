package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// recordedRequest is a request body that a real client sent.
type recordedRequest struct {
	file                 string // below the shared folder
	api, provider, model string
}

// recordedRequests lists every recorded request of the shared folder: those of the
// recordings and their replays, and those of the captured sessions of clients.
func recordedRequests(t *testing.T, shared string) (list []recordedRequest) {
	t.Helper()
	seen := map[string]bool{}
	add := func(r recordedRequest) {
		if !seen[r.file] {
			seen[r.file], list = true, append(list, r)
		}
	}
	for _, name := range []string{"manifest.jsonl", "replay.jsonl"} {
		rows, err := os.ReadFile(filepath.Join(shared, "wire", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(rows) {
			var row struct{ API, Provider, Request, Next string }
			if err := json.Unmarshal(bytes.ReplaceAll(line, []byte(`"next_request"`), []byte(`"next"`)), &row); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{row.Request, row.Next} {
				if file != "" {
					api := (&recording{API: row.API}).dialect()
					add(recordedRequest{file: filepath.Join("wire", file), api: api, provider: row.Provider})
				}
			}
		}
	}
	manifests, err := filepath.Glob(filepath.Join(shared, "clients", "*", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Exchanges []struct{ Path, Request string }
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(file, err)
		}
		for _, x := range manifest.Exchanges {
			u, err := url.Parse("http://127.0.0.1" + x.Path)
			if err != nil {
				t.Fatal(err)
			}
			if api, provider, model, ok := Recognize(u); ok && x.Request != "" {
				add(recordedRequest{filepath.Join("clients", filepath.Base(filepath.Dir(file)), x.Request), api, provider, model})
			}
		}
	}
	return list
}

// encodeAgain decodes a request and encodes what came of it.
func (r recordedRequest) encodeAgain(body []byte) (rawjson.Value, error) {
	req, err := DecodeRequest(r.api, r.provider, body)
	if err != nil {
		return nil, err
	}
	c, err := Open(r.provider, Config{Dialect: r.api, BaseURL: "http://localhost"})
	if err != nil {
		return nil, err
	}
	return c.Encode(req)
}

// TestRecordedRequestsSurviveDecoding decodes and encodes every recorded request: what
// comes out is the same JSON, the order of members aside. testdata/roundtrip.txt names
// the exceptions, each with its reason.
func TestRecordedRequestsSurviveDecoding(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	list := recordedRequests(t, shared)
	exceptions := roundTripExceptions(t)
	same := 0
	for _, r := range list {
		body, err := os.ReadFile(filepath.Join(shared, r.file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := rawjson.Parse(body)
		if err != nil {
			t.Fatal(r.file, err)
		}
		have, err := r.encodeAgain(body)
		if err == nil && rawjson.Equal(have, want) {
			same++
			continue
		}
		if reason := exceptions[filepath.ToSlash(r.file)]; reason != "" {
			t.Logf("%s differs: %s", r.file, reason)
			delete(exceptions, filepath.ToSlash(r.file))
			continue
		}
		t.Errorf("%s (%s %s): %v %s", r.file, r.api, r.provider, err, firstDifference("", have, want))
	}
	for file := range exceptions {
		t.Errorf("%s is an exception, and comes out as it was or is not there", file)
	}
	t.Logf("%d of %d requests come out as they were", same, len(list))
}

// roundTripExceptions reads the requests that do not come out as they were: their files
// and the reasons.
func roundTripExceptions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "roundtrip.txt"))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if file, reason, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			reasons[file] = reason
		}
	}
	return reasons
}

// firstDifference names the first place where two values differ.
func firstDifference(path string, have, want rawjson.Value) string {
	switch {
	case rawjson.Equal(have, want):
		return ""
	case have.Kind() == rawjson.KindObject && want.Kind() == rawjson.KindObject:
		for key, w := range want.Members() {
			if d := firstDifference(path+"."+key, have.Get(key), w); d != "" {
				return d
			}
		}
		for key, h := range have.Members() {
			if want.Get(key) == nil {
				return path + "." + key + ": added " + string(rawjson.Excerpt(h))
			}
		}
	case have.Kind() == rawjson.KindArray && want.Kind() == rawjson.KindArray:
		for i, w := range rawjson.Indexed(want) {
			if d := firstDifference(path+"[]", have.At(i), w); d != "" {
				return d
			}
		}
		return path + ": more elements"
	}
	return path + ": have " + string(rawjson.Excerpt(have)) + ", want " + string(rawjson.Excerpt(want))
}

// TestRequestsKeepTheirForm decodes and encodes requests in the forms that clients use
// and tract does not: each comes out as it was.
func TestRequestsKeepTheirForm(t *testing.T) {
	for name, c := range map[string]struct{ api, provider, body string }{
		"gemini in snake_case": {"gemini", "google", `{"system_instruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"iVBORw0KGgo="}},{"text":"?"}]},
			{"role":"model","parts":[{"function_call":{"name":"look","args":{"mime_type":"x"}},"thought_signature":"c2ln"},{"function_call":{"name":"look","args":{}}}]},
			{"role":"user","parts":[{"function_response":{"name":"look","response":{"output":"dark","file_uri":"kept"}}},{"function_response":{"name":"look","response":{"result":1}}}]}],
			"generation_config":{"max_output_tokens":9,"thinking_config":{"include_thoughts":true}},"tools":[{"function_declarations":[{"name":"look","parameters":{"type":"object","properties":{"mime_type":{"type":"string"}}}}]}]}`},
		"gemini contents of one side, without roles": {"gemini", "google", `{"contents":[{"parts":[{"text":"One."}]},{"role":"user","parts":[{"text":"Two."}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"n":1}}}]}]}`},
		"gemini results in the order of the client": {"gemini", "google", `{"contents":[{"role":"user","parts":[{"text":"Go."}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"f","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"b","name":"f","response":{"output":"2"}}},{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}}]}]}`},
		"messages with an instruction among them": {"messages", "anthropic", `{"model":"claude-x","max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":"One."},{"role":"user","content":[{"type":"text","text":"Two."}]},
			{"role":"assistant","content":"Yes."},{"role":"system","content":[{"type":"text","text":"Now"},{"type":"text","text":"this."}]},{"role":"user","content":"Go on."}]}`},
		"messages with an empty tool search": {"messages", "anthropic", `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"Find."},{"role":"assistant","content":[
			{"type":"server_tool_use","id":"s1","name":"tool_search_tool_regex","input":{"pattern":"x"}},{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[]}}]},
			{"role":"user","content":"And?"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ToolSearch","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[]}]}]}`},
		"responses with ids": {"responses", "openai", `{"model":"gpt-5","store":false,"include":["reasoning.encrypted_content"],"input":[{"type":"message","id":"msg_0","role":"user","content":[{"type":"input_text","text":"Go.","prompt_cache_breakpoint":true}]},
			{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"},{"role":"assistant","content":[{"type":"output_text","text":"I look."}]},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":""}]}`},
		"responses with changes of the tools": {"responses", "openai", `{"model":"gpt-5","store":false,"input":[{"role":"developer","type":"additional_tools","tools":[{"type":"function","name":"g","parameters":{}}]},
			{"role":"user","content":[{"type":"input_file","filename":"a.txt","file_data":"bW9zcw=="},{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]},
			{"type":"tool_search_call","call_id":"s1","execution":"client","arguments":{"query":"x"}},{"type":"tool_search_output","call_id":"s1","execution":"client","tools":[]}]}`},
		"responses of one string": {"responses", "openai", `{"model":"gpt-5","input":"Hi."}`},
		"chat with a developer": {"chat", "openai", `{"model":"gpt-5","messages":[{"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":"brief."}]},{"role":"user","content":[{"type":"text","text":"Hi.","cache_control":{"type":"ephemeral"}}],"name":"ada"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"}]}]}`},
		"cohere with lists": {"cohere", "cohere", `{"model":"command-a","stream":false,"messages":[{"role":"system","content":[{"type":"text","text":"Be brief."}]},{"role":"user","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]},
			{"role":"assistant","content":"Yes.","tool_calls":[],"citations":[]},{"role":"user","content":"Go on."}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordedRequest{api: c.api, provider: c.provider}
			want, err := rawjson.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			have, err := r.encodeAgain(want)
			if err != nil || !rawjson.Equal(have, want) {
				t.Errorf("%v %s\nhave %s", err, firstDifference("", have, want), have)
			}
		})
	}
}

// TestErrorAsAPlainString: xAI sends its errors so.
func TestErrorAsAPlainString(t *testing.T) {
	for _, api := range []string{"chat", "responses"} {
		for _, body := range []string{`{"code":"invalid-argument","error":"Incorrect API key."}`, "event: error\ndata: {\"code\":\"invalid-argument\",\"error\":\"Incorrect API key.\"}\n\n"} {
			_, err := llm.Collect(Decode(api, "xai", "", strings.NewReader(body), llm.FramingAuto), nil)
			var e *llm.APIError
			if !errors.As(err, &e) || e.Message != "Incorrect API key." || e.Type != "invalid-argument" {
				t.Errorf("%s %q: %v", api, body, err)
			}
		}
	}
}
