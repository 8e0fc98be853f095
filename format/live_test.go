package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

func say(typ llm.EventType, index int, text string) llm.Event {
	return llm.Event{Type: typ, Index: index, Text: text}
}

func finished(index int, b content.Block) llm.Event {
	return llm.Event{Type: llm.BlockDone, Index: index, Block: b}
}

// answer is a stream with a thought, text and a call.
var answer = []llm.Event{
	say(llm.ReasoningDelta, 0, "\nThe user wants"),
	say(llm.ReasoningDelta, 0, " 東京.\nI look"),
	say(llm.ReasoningDelta, 0, " it up."),
	finished(0, content.Reasoning{Text: "\nThe user wants 東京.\nI look it up."}),
	say(llm.TextDelta, 1, "Let me "),
	say(llm.TextDelta, 1, "look.\n"),
	finished(1, content.Assistant("Let me look.\n")),
	{Type: llm.ToolDelta, Index: 2, Name: "weather", Text: `{"city"`},
	finished(2, content.ToolCall{CallID: "c1", Name: "weather", Arguments: `{"city": "東京"}`}),
	finished(0, content.Reasoning{Text: "\nThe user wants 東京.\nI look it up.", Wire: content.Form{Seal: content.Seal{Type: content.Signature, Data: "x"}}.Wire()}),
	{Type: llm.HeadDone},
}

func TestLiveShowsStream(t *testing.T) {
	golden(t, "live.txt", everywhere(func(p *Printer) {
		l := NewLive(p, p)
		for _, e := range answer {
			l.Event(e)
		}
		l.Close(content.Usage{Reasoning: 9}, "anthropic")
	}))
}

func TestLiveReasoningPrinter(t *testing.T) {
	var text, thoughts bytes.Buffer
	l := NewLive(New(&text, Options{}), New(&thoughts, Options{}))
	for _, e := range answer {
		l.Event(e)
	}
	l.Close(content.Usage{Reasoning: 9}, "anthropic")
	if want := "Let me look.\n[tool-call] weather({\"city\": \"東京\"})\n"; text.String() != want {
		t.Errorf("text is %q, want %q", &text, want)
	}
	if want := "[reasoning] The user wants 東京.\nI look it up.\n\n"; thoughts.String() != want {
		t.Errorf("thoughts are %q, want %q", &thoughts, want)
	}
	text.Reset()
	l = NewLive(New(&text, Options{}), nil)
	for _, e := range answer {
		l.Event(e)
	}
	l.Close(content.Usage{Reasoning: 9}, "anthropic")
	if strings.Contains(text.String(), "reasoning") || !strings.HasPrefix(text.String(), "Let me") {
		t.Errorf("without a place for thoughts it shows %q", &text)
	}
}

func TestLive(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []llm.Event
		usage  content.Usage
		want   string
	}{
		{"nothing", nil, content.Usage{}, ""},
		{"undisclosed", []llm.Event{say(llm.TextDelta, 0, "Hi")}, content.Usage{Reasoning: 1726}, "Hi\n[reasoning] 1,726 tokens, not disclosed by openai\n"},
		{"sealed only", []llm.Event{finished(0, content.Reasoning{Wire: content.Form{Seal: content.Seal{Type: content.Encrypted, Data: "x"}}.Wire()})}, content.Usage{Reasoning: 2}, "[reasoning] 2 tokens, not disclosed by openai\n"},
		{"redacted", []llm.Event{finished(0, content.Reasoning{Wire: content.Form{Seal: content.Seal{Type: content.Redacted, Data: "x"}}.Wire()}), say(llm.TextDelta, 1, "Hi")}, content.Usage{}, "[reasoning] [redacted]\n\nHi\n"},
		{"not streamed", []llm.Event{finished(0, content.Reasoning{Text: "hm"}), finished(1, content.Assistant("Hi"))}, content.Usage{Reasoning: 1}, "[reasoning] hm\n\nHi\n"},
		{"the block says more", []llm.Event{say(llm.TextDelta, 0, "Hel"), finished(0, content.Assistant("Hello")), say(llm.TextDelta, 0, "late")}, content.Usage{}, "Hello\n"},
		{"the block says other words", []llm.Event{say(llm.TextDelta, 0, "<think>x"), finished(0, content.Reasoning{Text: "x"})}, content.Usage{}, "<think>x\n"},
		{"text in two blocks", []llm.Event{say(llm.TextDelta, 0, "It is "), say(llm.TextDelta, 1, "so.")}, content.Usage{}, "It is so.\n"},
		{"two thoughts", []llm.Event{say(llm.ReasoningDelta, 0, "a"), say(llm.ReasoningDelta, 1, "b")}, content.Usage{}, "[reasoning] a\n\n[reasoning] b\n"},
		{"interleaved", []llm.Event{say(llm.ReasoningDelta, 0, "a"), say(llm.TextDelta, 1, "b"), say(llm.ReasoningDelta, 0, "c")}, content.Usage{}, "[reasoning] a\n\nb\n\n[reasoning] c\n"},
		{"cut at the end", []llm.Event{say(llm.TextDelta, 0, "x\xe6\x9d")}, content.Usage{}, `x\xe6\x9d` + "\n"},
		{"an escape in two pieces", []llm.Event{say(llm.TextDelta, 0, "x\x1b"), say(llm.TextDelta, 0, "[31m\r"), say(llm.TextDelta, 0, "\ny")}, content.Usage{}, `x\x1b[31m` + "\ny\n"},
		{"other items", []llm.Event{finished(0, content.Native{JSON: `{"type":"compaction"}`}), finished(1, content.Media{Of: content.KindFile, Name: "a.txt"}), finished(2, content.ToolResult{Text: "ok\nyes"})}, content.Usage{}, "[native] compaction\n[file a.txt, 0 bytes]\n[tool-result] ok …\n"},
	} {
		var out bytes.Buffer
		p := New(&out, Options{})
		l := NewLive(p, p)
		for _, e := range c.events {
			l.Event(e)
		}
		l.Close(c.usage, "openai")
		if out.String() != c.want {
			t.Errorf("%s: shows %q, want %q", c.name, &out, c.want)
		}
	}
}

func TestLivePiecesEqualWhole(t *testing.T) {
	text := "日本語 🦀 e\u0301 ❤\ufe0f\r\nand \x1b[1m\u202e end\xff\n"
	for _, o := range eyes {
		shown := func(n int) string {
			var out bytes.Buffer
			p := New(&out, o)
			l := NewLive(p, p)
			for _, typ := range []llm.EventType{llm.ReasoningDelta, llm.TextDelta} {
				for rest := text; rest != ""; {
					piece := rest[:min(n, len(rest))]
					rest = rest[len(piece):]
					l.Event(say(typ, int(typ), piece))
				}
			}
			l.Close(content.Usage{}, "")
			return out.String()
		}
		want := plain(shown(len(text)))
		for n := 1; n < 9; n++ {
			got := shown(n)
			if plain(got) != want {
				t.Errorf("%+v, %d bytes at a time: %q, want %q", o, n, plain(got), want)
			}
			if err := harmless(got, o.Color); err != nil {
				t.Errorf("%+v, %d bytes at a time: %v", o, n, err)
			}
		}
	}
}
