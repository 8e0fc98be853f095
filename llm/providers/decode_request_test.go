package providers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// encodeAgain encodes what a body was decoded to.
func encodeAgain(t *testing.T, api, provider string, body []byte) (rawjson.Value, *llm.Request) {
	t.Helper()
	req, err := DecodeRequest(api, provider, body)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(provider, Config{Dialect: api, BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	return out, req
}

// TestRecordedRequestsAreUnderstood holds decode and encode to each other
// over every recorded request of a dialect that reads them.
func TestRecordedRequestsAreUnderstood(t *testing.T) {
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	rows, err := os.ReadFile(filepath.Join(shared, "wire/manifest.jsonl"))
	if err != nil {
		t.Skipf("no recordings (TRACT_SHARED): %v", err)
	}
	read := map[string]int{}
	for line := range bytes.Lines(rows) {
		row, err := rawjson.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		name, api := row.Get("request").Text(), row.Get("api").Text()
		if d := dialectNamed(api); name == "" || d == nil || d.DecodeRequest == nil {
			continue
		}
		read[api]++
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(shared, "wire", name))
			if err != nil {
				t.Fatal(err)
			}
			have, req := encodeAgain(t, api, row.Get("provider").Text(), body)
			if want, _ := rawjson.Parse(body); !rawjson.Equal(have, want) {
				t.Errorf("comes out as\n%s\nwant\n%s", have, rawjson.Compact(want))
			}
			if rawjson.Value(req.Settings.Extra).Get("messages") != nil || len(req.Messages) == 0 {
				t.Errorf("the conversation was not read: %s", req.Settings.Extra)
			}
			for _, m := range req.Messages {
				for _, b := range m.Blocks {
					if n, ok := b.(content.Native); ok {
						t.Errorf("not understood: %s", n.JSON)
					}
				}
			}
		})
	}
	t.Logf("requests read: %v", read)
	if total := read["chat"] + read["messages"] + read["gemini"] + read["responses"] + read["cohere"]; total != 67 {
		t.Errorf("requests read: %v", read)
	}
}

// decodeRequestCases has a request of each dialect, and the blocks that it is decoded to.
var decodeRequestCases = map[string]struct{ api, provider, body, said string }{
	"messages": {
		"messages", "anthropic", `{"model":"claude-opus-4-6","max_tokens":5000,"temperature":0.5,"metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":2000},
			"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
			"messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
				{"type":"document","title":"d","source":{"type":"url","url":"https://example.com/d.pdf"}},{"type":"image","source":{"type":"file","file_id":"f"}}]},
				{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s1"},{"type":"redacted_thinking","data":"s2"},{"type":"tool_use","id":"t1","name":"look","input":{}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"dark"},{"type":"search_result","source":"x","title":"y","content":[]},{"type":"text","text":"Well?"}]}],
			"tools":[{"name":"look","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"look"}}`,
		"system[system] user[user image file image] assistant[reasoning reasoning tool-call] tool[tool-result] user[native user]",
	},
	"chat": {
		"chat", "openai", `{"model":"gpt-5","max_completion_tokens":100,"reasoning_effort":"low","seed":7,"stream":true,"stream_options":{"include_usage":true},
			"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}},
				{"type":"file","file":{"filename":"d.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}},{"type":"file","file":{"file_id":"f"}}]},
				{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"dark"},{"role":"assistant","content":"It is dark."}],
			"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}],"tool_choice":{"type":"function","function":{"name":"look"}}}`,
		"system[system] user[user image file file native] assistant[assistant tool-call] tool[tool-result] assistant[assistant]",
	},
	"compatible": {
		"chat", "", `{"messages":[{"role":"user","content":"Run it.","name":"ada"},{"role":"assistant","content":null,"function_call":{"name":"run","arguments":"{}"}},
				{"role":"function","name":"run","content":"ok"},{"role":"assistant","content":"<think>\nfine\n</think>\n\nDone."},{"role":"user","content":"Why?"},
				{"role":"assistant","reasoning_content":"because","content":"So."}],"stream":false,"reasoning_effort":"high"}`,
		"user[user] assistant[tool-call] tool[tool-result] assistant[reasoning assistant] user[user] assistant[reasoning assistant]",
	},
	"openrouter": {"chat", "openrouter", `{"model":"m","reasoning":{"max_tokens":2000},"messages":[{"role":"user","content":"a"}],"stream":true}`, "user[user]"},
	"gemini": {
		"gemini", "google", `{"systemInstruction":{"role":"user","parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"What is it?"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]},
				{"role":"model","parts":[{"text":"Hm.","thought":true},{"functionCall":{"name":"look","args":{}},"thoughtSignature":"s1"},{"functionCall":{"name":"look","args":{"at":"it"}}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"dark"}}},{"functionResponse":{"name":"look","response":{"error":"no"}}},{"text":"Well?"}]},
				{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"One."}]}],
			"generationConfig":{"maxOutputTokens":9,"temperature":1,"topK":3,"thinkingConfig":{"thinkingBudget":200}},"tools":[{"googleSearch":{}}],"safetySettings":[]}`,
		"system[system] user[user image] assistant[reasoning tool-call tool-call] tool[tool-result tool-result] user[user] assistant[tool-call tool-result assistant]",
	},
	"responses": {
		"responses", "openai", `{"model":"gpt-5","instructions":"Be brief.","reasoning":{"effort":"low"},"previous_response_id":"r0","max_output_tokens":9,
			"input":[{"role":"developer","content":"Yes."},{"type":"message","role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"},{"type":"input_file","file_id":"f"}]},
				{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"s1"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},
				{"type":"function_call_output","call_id":"c1","output":"dark"},{"role":"user","content":"Well?"}],
			"tools":[{"type":"web_search"},{"type":"function","name":"look","parameters":{},"strict":true}],"tool_choice":{"type":"function","name":"look"}}`,
		"system[system] user[user image file] assistant[reasoning tool-call] tool[tool-result] user[user]",
	},
	"cohere": {
		"cohere", "cohere", `{"model":"command-a-reasoning","stream":false,"thinking":{"type":"enabled","token_budget":300},"tool_choice":"REQUIRED","safety_mode":"OFF",
			"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_plan":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c1","content":[{"type":"document","document":{"data":"dark"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Dark."}]}],
			"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]}`,
		"user[user] assistant[assistant tool-call] tool[tool-result] assistant[reasoning assistant]",
	},
	"converse": {
		"converse", "", `{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"What is it?"},{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}},{"document":{"format":"pdf","name":"d","source":{"s3Location":{"uri":"s3://b/d.pdf"}}}},{"guardContent":{}}]},
				{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"s1"}}},{"toolUse":{"toolUseId":"t1","name":"look","input":{}}}]},
				{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"dark"}],"status":"error"}},{"text":"Well?"}]}],
			"inferenceConfig":{"maxTokens":9,"temperature":0.5,"topP":0.5},"toolConfig":{"tools":[{"toolSpec":{"name":"look","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}],"toolChoice":{"any":{}}}}`,
		"system[system] user[user image file native] assistant[reasoning tool-call] tool[tool-result] user[user]",
	},
	"interactions": {
		"interactions", "", `{"model":"gemini-3-pro","store":false,"system_instruction":"Be brief.","input":[{"type":"user_input","content":[{"type":"text","text":"What is it?"},{"type":"image","mime_type":"image/png","data":"iVBORw0KGgo="}]},
				{"type":"thought","signature":"s1","summary":[{"type":"text","text":"Hm."}]},{"type":"function_call","id":"c1","name":"look","arguments":{}},
				{"type":"function_result","name":"look","call_id":"c1","result":"dark","is_error":true},{"type":"model_output","content":[{"type":"text","text":"Dark."}]}],
			"generation_config":{"temperature":0.5,"thinking_level":"low","top_p":0.5},"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{}}},{"type":"google_search"}]}`,
		"system[system] user[user image] assistant[reasoning tool-call] tool[tool-result] assistant[assistant]",
	},
	"invoke": {"invoke", "", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "user[user]"},
	"ollama": {
		"ollama", "", `{"model":"gpt-oss:20b","stream":false,"think":"low","options":{"num_predict":9,"temperature":0.5,"top_k":3},"keep_alive":"5m",
			"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is it?","images":["iVBORw0KGgo="]},
				{"role":"assistant","content":"","thinking":"Hm.","tool_calls":[{"function":{"name":"look","arguments":{"at":"it"}}}]},{"role":"tool","tool_name":"look","content":"dark"},
				{"role":"assistant","content":"Dark."}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]}`,
		"system[system] user[user image] assistant[reasoning tool-call] tool[tool-result] assistant[assistant]",
	},
}

// TestDecodeRequestReadsBlocks shows for each dialect what becomes of a body, and
// that it comes out as it was.
func TestDecodeRequestReadsBlocks(t *testing.T) {
	for name, c := range decodeRequestCases {
		t.Run(name, func(t *testing.T) {
			have, req := encodeAgain(t, c.api, c.provider, []byte(c.body))
			wantJSON(t, have, c.body)
			var said []string
			for _, m := range req.Messages {
				var kinds []string
				for _, b := range m.Blocks {
					kinds = append(kinds, b.Kind().String())
					if seal := b.Form().Seal; !seal.IsZero() && seal.Minted != c.api+"/"+req.Settings.Model {
						t.Errorf("a seal minted by %q", seal.Minted)
					}
				}
				said = append(said, m.Role.String()+"["+strings.Join(kinds, " ")+"]")
			}
			if got := strings.Join(said, " "); got != c.said {
				t.Errorf("have %s\nwant %s", got, c.said)
			}
			if len(req.Settings.Extra) > 0 && (rawjson.Value(req.Settings.Extra).Get("messages") != nil || rawjson.Value(req.Settings.Extra).Get("contents") != nil) {
				t.Errorf("the conversation is in %s", req.Settings.Extra)
			}
		})
	}
}

// TestServerToolResultBelongsToTheResponse: it has the type of those that the
// asker gives.
func TestServerToolResultBelongsToTheResponse(t *testing.T) {
	body := `{"input":[{"role":"user","content":"Find one."},{"type":"tool_search_call","id":"a","call_id":null,"execution":"server","arguments":{}},
		{"type":"tool_search_output","id":"b","call_id":null,"execution":"server","tools":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":"ok"}]}`
	have, req := encodeAgain(t, "responses", "openai", []byte(body))
	wantJSON(t, have, body)
	if len(req.Messages) != 3 || len(req.Messages[1].Blocks) != 3 || len(req.Messages[2].Blocks) != 1 {
		t.Fatalf("it is read as %+v", req.Messages)
	}
	if r, ok := req.Messages[1].Blocks[1].(content.ToolResult); !ok || !r.Server {
		t.Errorf("the provider's result is read as %+v", req.Messages[1].Blocks[1])
	}
}

// TestDecodeRequestReadsSettings: what a body asks for has a field where there is one.
func TestDecodeRequestReadsSettings(t *testing.T) {
	req, err := DecodeRequest("messages", "", []byte(`{"model":"claude-opus-4-6","max_tokens":100,"temperature":0.5,"thinking":{"type":"adaptive","display":"summarized"},
		"output_config":{"effort":"low"},"messages":[],"stream":true,"top_p":0.9,"tool_choice":{"type":"any"},"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := req.Settings
	if s.Model != "claude-opus-4-6" || s.MaxOutputTokens != 100 || *s.Temperature != 0.5 || s.ToolChoice != "required" || s.Reasoning.Effort != "low" || s.Reasoning.Disabled || !req.Stream {
		t.Errorf("the settings are %+v", s)
	}
	wantJSON(t, s.Extra, `{"top_p":0.9}`)
	if f := req.Tools[0]; len(req.Tools) != 1 || f.Name != "f" || f.Description != "d" || string(f.Schema) != `{"type":"object"}` || f.Native != nil {
		t.Errorf("the tools are %+v", req.Tools)
	}
}

func TestDecodeRequestErrors(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                               "want an object",
		`{`:                                "parse JSON",
		`{"messages":{}}`:                  "want an array",
		`{"messages":[{"role":"boss"}]}`:   "messages[0]: want a message",
		`{"messages":[{"role":"user"},7]}`: "messages[1]: want a message",
	} {
		for _, api := range []string{"chat", "messages"} {
			if _, err := DecodeRequest(api, "", []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s as %s: %v, want %s", body, api, err, want)
			}
		}
	}
	if _, err := DecodeRequest("telepathy", "", []byte(`{}`)); err == nil {
		t.Error("an unknown dialect is read")
	}
}

// FuzzDecodeRequest: what was read comes out so that it reads the same.
func FuzzDecodeRequest(f *testing.F) {
	f.Add("chat", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"c"}]}`)
	f.Add("messages", `{"system":"a","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"c"}]}]}`)
	f.Add("gemini", `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}]}`)
	f.Add("responses", `{"input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":""}]}`)
	f.Add("converse", `{"messages":[{"role":"user","content":[{"text":"a"},{"toolResult":{"toolUseId":"t","content":[]}}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f"}}]}]}`)
	f.Add("ollama", `{"messages":[{"role":"user","content":"a","images":["AAAA"]},{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},{"role":"tool","content":"c"}]}`)
	f.Add("interactions", `{"input":[{"type":"user_input","content":[{"type":"text","text":"a"}]},{"type":"function_call","id":"c","name":"f"},{"type":"function_result","call_id":"c","result":{}}]}`)
	f.Add("cohere", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_plan":"b"}]}`)
	f.Fuzz(func(t *testing.T, api, body string) {
		req, err := DecodeRequest(api, "", []byte(body))
		if err != nil || api == "" { // Open refuses an unknown provider without a dialect
			return
		}
		c, err := Open("x", Config{Dialect: api, BaseURL: "http://localhost"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Encode(req)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := DecodeRequest(api, "", out); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
	})
}
