package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func draft(b content.Block) commit.Draft { return commit.Draft{Block: b} }

// response is a model's answer with every sort of block.
func response() *llm.Response {
	seal := func(k content.SealType, data string) content.Wire {
		return content.Form{Seal: content.Seal{Type: k, Data: data, Minted: "messages/m"}}.Wire()
	}
	detail := content.Reasoning{Format: content.FormatDetails, Source: "reasoning_details[reasoning.encrypted]", Wire: seal(content.Encrypted, "ZW5j")}
	detail.SetExtra([]byte(`{"format":"google-gemini-v1"}`))
	call := content.ToolCall{CallID: "c1", Name: "weather", Arguments: `{"city":"東京","big":12345678901234567890}`, Wire: seal(content.Signature, "c2ln")}
	call.SetID("fc_1")
	return &llm.Response{
		Head: llm.Head{ID: "resp_1", Model: "m-1", Finish: "tool_use", Usage: content.Usage{Input: 10, Output: 20, Reasoning: 5, Cached: 3}},
		Blocks: []content.Block{
			content.Reasoning{Format: content.FormatAnthropic, Source: "content[].thinking", Text: "Hm.", Wire: seal(content.Signature, "c2VhbA==")},
			content.Reasoning{Format: content.FormatAnthropic, Source: "content[].redacted_thinking", Wire: seal(content.Redacted, "cmVk")},
			content.Reasoning{Format: content.FormatThinkTags, Source: "content:<think>", Text: "tagged"},
			content.Reasoning{Format: content.FormatResponses, Source: "output[].summary", Parts: []string{"one", "two"}, Wire: content.Form{ID: "rs_1"}.Wire()},
			detail,
			content.Reasoning{Format: content.FormatResponses, Source: "output[].(empty item)", Wire: content.Form{ID: "rs_2"}.Wire()},
			content.Reasoning{Format: content.FormatGemini, Wire: seal(content.Signature, "b25seQ==")},
			content.Assistant("Let me look."),
			call,
			content.ToolCall{CallID: "c2", Name: "free", Arguments: "not JSON"},
			content.ToolCall{CallID: "s1", Name: "web_search", Server: true},
			content.ToolResult{CallID: "s1", Text: "found", Server: true},
			content.Text{Of: content.KindAssistant, Wire: content.Form{Type: "refusal"}.Wire(), Text: "No."},
			content.Native{JSON: `{"type":"compaction"}`},
			content.Native{JSON: `{"type":"program"}`},
			content.Text{Of: content.KindAssistant, Wire: content.Form{Type: "tool_plan"}.Wire(), Text: "I will."},
			content.Media{Of: content.KindImage, MediaType: "image/png", Data: "x"},
			content.Assistant(" And \xff."),
		},
	}
}

// programs is everything that programs get.
func programs(s *story) map[string]any {
	r := response()
	reply := NewReply(&tract.Response{
		Text: r.Text(), Reasoning: r.Reasoning(), Blocks: r.Blocks, Usage: r.Usage, Finish: r.Finish,
		Commits: []objects.ID{s.tip.ID}, Manifest: objects.Hash(nil),
	})
	reply.Rescued = "refs/rescued/main/1"
	var log, show []any
	for name := range s.named() {
		log, show = append(log, CommitJSON(s.listed(name))), append(show, ShowJSON(s.listed(name)))
	}
	before := *s
	before.tip = s.commits[len(s.commits)-3]
	with := compile.Options{Policy: priority.Policy{IncludeReasoning: true}}
	api := &llm.APIError{Provider: "openai", Status: 429, Type: "rate_limit", Message: "slow down", Raw: []byte(`{"code":429}`)}
	return map[string]any{
		"log":     log,
		"show":    show,
		"prompt":  PromptJSON(s.compile(with), "messages/claude-sonnet-4-5"),
		"diff":    DiffJSON(diff.Prompts(before.compile(compile.Options{}), s.compile(with))),
		"history": HistoryJSON(&diff.History{Base: s.commits[0].ID, OnlyA: s.commits[1:2], OnlyB: s.commits[len(s.commits)-1:]}),
		"decode":  DecodeJSON("messages", r, nil),
		"errors": []any{
			DecodeJSON("chat", nil, fmt.Errorf("decode: %w", api)),
			DecodeJSON("chat", &llm.Response{Incomplete: true}, fmt.Errorf("decode: %w", llm.ErrTruncated)),
			DecodeJSON("chat", nil, llm.ErrProtocol),
			map[string]ErrorJSON{"error": {Code: 6, Kind: "provider", Message: "no", Hint: "wait", Rescued: "refs/rescued/main/1"}},
		},
		"reply": []any{reply, NewReply(&tract.Response{})},
		"events": []any{
			EventJSON(llm.Event{Type: llm.ReasoningDelta, Text: "Hm"}),
			EventJSON(llm.Event{Type: llm.TextDelta, Index: 1, Text: "\xe6\x9d"}),
			EventJSON(llm.Event{Type: llm.ToolDelta, Index: 2, Name: "weather", Text: "{"}),
			EventJSON(llm.Event{Type: llm.BlockDone, Index: 1, Block: content.Assistant("Hi")}),
			EventJSON(llm.Event{Type: llm.HeadDone, Head: r.Head}),
		},
	}
}

func TestJSONGoldens(t *testing.T) {
	for name, v := range programs(weather(t)) {
		t.Run(name, func(t *testing.T) {
			var out, line bytes.Buffer
			if err := errors.Join(Encode(&out, v), EncodeLine(&line, v)); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", out.String())
			var small bytes.Buffer
			if err := json.Compact(&small, out.Bytes()); err != nil {
				t.Fatal(err)
			}
			if line.String() != small.String()+"\n" {
				t.Errorf("on one line it is %s", &line)
			}
		})
	}
}

func TestDecodeJSON(t *testing.T) {
	var v struct {
		Blocks     []string
		Text       string
		TextBase64 string `json:"text_base64"`
		Reasoning  []struct{ Form, Encrypted, Signature, Format string }
		ToolCalls  []struct {
			ArgumentsRaw string `json:"arguments_raw"`
			Preceded     bool   `json:"preceded_by_reasoning"`
			Ref          *int   `json:"reasoning_ref"`
			Server       bool
		} `json:"tool_calls"`
		Other []struct {
			Block     int
			Signature string
		} `json:"signatures_on_other_blocks"`
	}
	var out bytes.Buffer
	if err := Encode(&out, DecodeJSON("messages", response(), nil)); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	blocks := "reasoning reasoning reasoning reasoning reasoning reasoning reasoning text tool_call tool_call server_tool_call server_tool_result refusal compaction other:program plan file text"
	if got := strings.Join(v.Blocks, " "); got != blocks {
		t.Errorf("blocks are %s", got)
	}
	if v.Text != "Let me look. And \ufffd." || v.TextBase64 == "" {
		t.Errorf("text is %q, with bytes %q", v.Text, v.TextBase64)
	}
	forms := ""
	for _, r := range v.Reasoning {
		forms += r.Form + " "
	}
	if forms != "text redacted tags summary encrypted empty signature " {
		t.Errorf("forms are %s", forms)
	}
	if v.Reasoning[4].Format != "google-gemini-v1" || v.Reasoning[1].Encrypted != "cmVk" {
		t.Errorf("reasoning is %+v", v.Reasoning)
	}
	if c := v.ToolCalls; !c[0].Preceded || c[0].Ref != nil || c[1].Preceded || c[1].Ref == nil || *c[1].Ref != 0 || !c[2].Server {
		t.Errorf("calls are %+v", c)
	}
	if len(v.Other) != 1 || v.Other[0].Block != 8 || v.Other[0].Signature != "c2ln" {
		t.Errorf("seals elsewhere: %+v", v.Other)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	text := "\u009b2J\u202e\U000e0041\x7f\u2028 <b>&日本 🦀\x1b \\u202e"
	var out bytes.Buffer
	if err := Encode(&out, map[string]string{"text": text}); err != nil {
		t.Fatal(err)
	}
	if err := harmless(out.String(), false); err != nil {
		t.Error(err)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["text"] != text {
		t.Errorf("%s is %+q, %v", &out, back["text"], err)
	}
	if !strings.Contains(out.String(), "<b>&日本 🦀") {
		t.Errorf("what needs no escape is written as %s", &out)
	}
	if err := Encode(brokenPipe{}, 1); !errors.Is(err, errPipe) {
		t.Errorf("writing to a broken pipe: %v", err)
	}
	if err := Encode(&out, func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
}

// TestJSONCannotControlTerminal: JSON of others is shown with escapes that mean the same.
func TestJSONCannotControlTerminal(t *testing.T) {
	for given, want := range map[string]string{
		`{"a":"plain ü 日本"}`:                 `{"a":"plain ü 日本"}`,
		"{\"a\":\"\u009b\x7f\u202e\u200d\"}": `{"a":"\u009b\u007f\u202e\u200d"}`,
		"{\"\U000e0041\":\r\n\"x\xff\"}":     `{"\udb40\udc41":` + " \n" + `"x\ufffd"}`,
	} {
		if got := string(EscapeJSON([]byte(given))); got != want {
			t.Errorf("EscapeJSON(%+q) = %+q, want %+q", given, got, want)
		}
	}
}

func TestArgumentsKeepTheirBytes(t *testing.T) {
	for in, want := range map[string]string{
		"": "{}", " \n": "{}", `{"a": 1e400}`: `{"a":1e400}`, "nope": "", `{"a":"` + "\xff" + `"}`: `{"a":"` + "\ufffd" + `"}`,
		`{"a":1,"a":2}`: `{"a":1,"a":2}`, strings.Repeat("[", 300) + strings.Repeat("]", 300): "",
	} {
		got, err := json.Marshal(parsedJSON(in))
		if in == "nope" || len(in) > 100 {
			if parsedJSON(in) != nil {
				t.Errorf("%.20q is taken for JSON", in)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%q is %s, want %s (%v)", in, got, want, err)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(hostile)
	f.Add(`{"a":"\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		b := content.ToolCall{CallID: text, Name: text, Arguments: text}
		for _, v := range []any{
			EventJSON(llm.Event{Type: llm.BlockDone, Block: b}), EventJSON(llm.Event{Type: llm.TextDelta, Text: text}),
			DecodeJSON(text, &llm.Response{Blocks: []content.Block{b, content.Native{JSON: text}, content.Reasoning{Text: text}}}, errors.New(text)),
			NewReply(&tract.Response{Text: text, Reasoning: text, Blocks: []content.Block{b, content.Assistant(text)}, Finish: text}),
		} {
			var out bytes.Buffer
			if err := Encode(&out, v); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if !json.Valid(out.Bytes()) {
				t.Fatalf("not JSON: %s", &out)
			}
			if err := harmless(out.String(), false); err != nil {
				t.Fatal(err)
			}
		}
	})
}
