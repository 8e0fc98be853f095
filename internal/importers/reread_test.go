package importers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// mixed is a conversation with a message on each line, more than is read at once: words,
// words with escapes, calls, results, and members that nobody knows.
func mixed(format Format) string {
	var text strings.Builder
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{\"a\":\"%s\"}"}}]}`
	result := `{"role":"tool","tool_call_id":"c%d","content":"%s"}`
	if format == Anthropic {
		call = `{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"f","input":{"a":"%s"},"x_note":[1]}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"text","text":"%s"}]}]}`
	}
	for i := range 4000 {
		words := fmt.Sprintf("%d %s", i, strings.Repeat("words ", i%50))
		switch i % 5 {
		case 0:
			fmt.Fprintf(&text, `{"role":"user","content":"%s"}`, words)
		case 1:
			fmt.Fprintf(&text, `{"role":"assistant","content":"%s\n\u00e9\"","note":{"of":"%s"}}`, words, words)
		case 2:
			fmt.Fprintf(&text, call, i, words)
		case 3:
			fmt.Fprintf(&text, result, i-1, words)
		case 4:
			fmt.Fprintf(&text, `{"role":"user","content":[{"type":"text","text":"%s","x_note":["%s"]}]}`, words, words)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// TestAFileThatIsReadAgain gives what a pipe gives, which cannot be read twice, and what one
// array of the same messages gives: in every format, of files that are larger than what is
// read at once. What was given first is the same at the end.
func TestAFileThatIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		name, text, open, end string
		format                Format
	}{
		{"chat", mixed(OpenAI), "[", "]", Auto},
		{"chat, asked for", mixed(OpenAI), "[", "]", OpenAI},
		{"messages", mixed(Anthropic), "[", "]", Auto},
		{"messages, asked for", mixed(Anthropic), "[", "]", Anthropic},
		{"responses", items(), "[", "]", Auto},
		{"responses, asked for", items(), "[", "]", OpenAI},
		{"bodies", bodies(), "[", "]", Auto},
		{"claude-code", session(), `{"loglines":[`, "]}", Auto},
		{"claude-code, asked for", session(), `{"loglines":[`, "]}", ClaudeCode},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.text) < 1<<20 {
				t.Fatalf("only %d bytes", len(c.text))
			}
			name := filepath.Join(t.TempDir(), "log.jsonl")
			if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			array := c.open + strings.ReplaceAll(strings.TrimSpace(c.text), "\n", ",") + c.end
			want := everything(t, strings.NewReader(array), c.format)
			for source, r := range map[string]io.Reader{"a file": f, "a pipe": io.MultiReader(strings.NewReader(c.text))} {
				have := everything(t, r, c.format)
				if len(have) != len(want) {
					t.Errorf("%d blocks of %s, %d of an array", len(have), source, len(want))
				}
				for i := range min(len(have), len(want)) {
					if have[i] != want[i] {
						t.Fatalf("block %d is %s of %s, %s of an array", i, have[i], source, want[i])
					}
				}
			}
		})
	}
}

// everything is each block that a file gives, with its place in the conversation.
func everything(t *testing.T, r io.Reader, format Format) (list []string) {
	t.Helper()
	var entries []Entry
	for e, err := range Read("log", r, format) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	for n, e := range entries {
		for _, p := range e.Parts {
			if _, unknown := p.Block.(content.Native); unknown {
				t.Fatalf("message %d is not understood: %+v", n, p.Block)
			}
			list = append(list, fmt.Sprintf("%d %s/%s<%s %s %s %s %q", n, e.Session, e.Thread, e.From, e.Model, e.ResponseID, p.ID, content.Encode(p.Block)))
		}
	}
	return list
}

// filled gives lines of many lengths, of a conversation in turns of four: what is asked, a
// thought and a call, the result, and the answer. What is given are a number and words.
func filled(turn func(i int, words string) string) string {
	var text strings.Builder
	for i := 0; text.Len() < 2*1<<20; i++ {
		text.WriteString(turn(i, fmt.Sprintf("%d %s", i, strings.Repeat("words ", i*i%997))))
	}
	return text.String()
}

// items is a conversation of the items of OpenAI's Responses, one a line.
func items() string {
	return filled(func(i int, words string) string {
		return fmt.Sprintf(`{"role":"user","content":"%[2]s"}
{"type":"reasoning","id":"rs_%[1]d","summary":[{"type":"summary_text","text":"%[2]s"}],"encrypted_content":"seal %[2]s"}
{"type":"function_call","call_id":"c%[1]d","name":"f","arguments":"{\"a\":\"%[2]s\"}"}
{"type":"function_call_output","call_id":"c%[1]d","output":"%[2]s"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%[2]s"}]}
`, i, words)
	})
}

// bodies is request bodies, one a line.
func bodies() string {
	return filled(func(i int, words string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%[2]s"},{"role":"assistant","content":"%[1]d"}]}
{"model":"m","input":[{"type":"message","role":"user","content":"%[2]s"},{"type":"reasoning","summary":[],"encrypted_content":"%[2]s"}]}
`, i, words)
	})
}

// session is a session log of Claude Code.
func session() string {
	return filled(func(i int, words string) string {
		const line = `{"type":"%s","uuid":"%s%d","parentUuid":"%s","sessionId":"s","message":{"role":"%[1]s",%[5]s}}` + "\n"
		answer := fmt.Sprintf(`"id":"msg_%d","model":"m","usage":{"output_tokens":%[1]d},"content":[{"type":`, i)
		before := fmt.Sprintf("r%d", i-1)
		return fmt.Sprintf(line, "user", "u", i, before, `"content":"`+words+`"`) +
			fmt.Sprintf(line, "assistant", "t", i, fmt.Sprintf("u%d", i), answer+`"thinking","thinking":"`+words+`","signature":"seal `+words+`"}]`) +
			fmt.Sprintf(line, "assistant", "c", i, fmt.Sprintf("t%d", i), answer+fmt.Sprintf(`"tool_use","id":"toolu_%d","name":"f","input":{"a":"%s"}}]`, i, words)) +
			fmt.Sprintf(line, "user", "r", i, fmt.Sprintf("c%d", i), fmt.Sprintf(`"content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]`, i, words))
	})
}
