package providers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"pgregory.net/rapid"
)

// fieldsOf is a message with these fields, in one piece.
func fieldsOf(fields [][2]string) rawjson.Value {
	var o rawjson.Object
	o.SetString("role", "assistant")
	o.SetString("content", "Blue.")
	for _, f := range fields {
		o.SetString(f[0], f[1])
	}
	return o.Bytes()
}

// readMessage reads a message that comes in one piece.
func readMessage(t rapid.TB, m rawjson.Value) []content.Block {
	t.Helper()
	return readChat(t, `{"id":"1","choices":[{"message":`+string(m)+`,"finish_reason":"stop"}]}`)
}

func readChat(t rapid.TB, body string) []content.Block {
	t.Helper()
	r, err := llm.Collect(Decode("chat", "chat", "m", strings.NewReader(body), llm.FramingAuto), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Blocks
}

// streamed is the message as a stream: each field cut into pieces of n bytes, those
// of all fields side by side, the text at the end.
func streamed(fields [][2]string, n int) string {
	var b strings.Builder
	for at, more := 0, true; more; at += n {
		more = false
		var delta rawjson.Object
		for _, f := range fields {
			if at < len(f[1]) {
				delta.SetString(f[0], f[1][at:min(at+n, len(f[1]))])
				more = true
			}
		}
		if more {
			fmt.Fprintf(&b, "data: {\"id\":\"1\",\"choices\":[{\"delta\":%s}]}\n\n", delta.Bytes())
		}
	}
	b.WriteString("data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"Blue.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

// reasoningOf is the reasoning among blocks, with where it came from.
func reasoningOf(blocks []content.Block) string {
	var list []string
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Reasoning:
			list = append(list, fmt.Sprintf("%s=%q", b.Source, b.Text))
		default:
			list = append(list, "|")
		}
	}
	return strings.Join(list, " ")
}

// TestFirstNonBlankFieldIsTheReasoning: and what others say beside it is kept,
// and goes back in its own field.
func TestFirstNonBlankFieldIsTheReasoning(t *testing.T) {
	for name, c := range map[string]struct {
		fields [][2]string
		want   string
	}{
		"one":               {[][2]string{{"reasoning", "Hm."}}, `reasoning="Hm." |`},
		"a blank one first": {[][2]string{{"reasoning_content", "\n"}, {"reasoning", "Hm."}}, `reasoning="Hm." |`},
		"two blank ones":    {[][2]string{{"reasoning_content", " "}, {"reasoning", "\n\n"}, {"reasoning_text", "Hm."}}, `reasoning_text="Hm." |`},
		"a blank one last":  {[][2]string{{"reasoning_content", "Hm."}, {"reasoning", " \n"}}, `reasoning_content="Hm." |`},
		"only blank ones":   {[][2]string{{"reasoning_content", "\n"}, {"reasoning", " "}}, `|`},
		"white space first": {[][2]string{{"reasoning_content", "\n\nHm."}}, `reasoning_content="\n\nHm." |`},
		"twice the same":    {[][2]string{{"reasoning_content", "Hm, so."}, {"reasoning", "Hm, so."}}, `reasoning_content="Hm, so." |`},
		"two that differ":   {[][2]string{{"reasoning_content", "Hm, so."}, {"reasoning", "In short: so."}}, `reasoning_content="Hm, so." reasoning="In short: so." |`},
		"at the end":        {[][2]string{{"reasoning_content", "Hm, so."}, {"reasoning", "Hm, no."}}, `reasoning_content="Hm, so." reasoning="Hm, no." |`},
		"one goes on":       {[][2]string{{"reasoning_content", "Hm"}, {"reasoning", "Hm, so."}}, `reasoning_content="Hm" reasoning="Hm, so." |`},
		"one breaks off":    {[][2]string{{"reasoning_content", "Hm, so."}, {"reasoning", "Hm"}}, `reasoning_content="Hm, so." |`},
		"three":             {[][2]string{{"reasoning_content", "a"}, {"reasoning", "b"}, {"reasoning_text", "a"}}, `reasoning_content="a" reasoning="b" |`},
		"three others":      {[][2]string{{"reasoning_content", "a"}, {"reasoning", "b"}, {"reasoning_text", "c"}}, `reasoning_content="a" reasoning="b" reasoning_text="c" |`},
	} {
		t.Run(name, func(t *testing.T) {
			m := fieldsOf(c.fields)
			whole := readMessage(t, m)
			if got := reasoningOf(whole); got != c.want {
				t.Errorf("in one piece: %s\nwant %s", got, c.want)
			}
			checkReplay(t, whole, m)
			for n := 1; n < 9; n++ {
				blocks := readChat(t, streamed(c.fields, n))
				if got := reasoningOf(blocks); got != c.want {
					t.Errorf("by %d: %s\nwant %s", n, got, c.want)
				}
				checkReplay(t, blocks, m)
			}
		})
	}
}

// checkReplay compares what goes back with the message that came.
func checkReplay(t rapid.TB, blocks []content.Block, m rawjson.Value) {
	t.Helper()
	back, err := Replay("chat", "chat", "m", blocks)
	if err != nil || !rawjson.Equal(back, m) {
		t.Errorf("goes back as %s, %v\ncame as      %s", back, err, m)
	}
}

// TestEveryReasoningFieldIsKept: whatever the fields say and however they are cut, all
// of it goes back in the field that it came in, and a stream says what one piece does.
func TestEveryReasoningFieldIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fields [][2]string
		for _, field := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
			text := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n")), 0, 6, -1).Draw(t, field)
			if text != "" {
				fields = append(fields, [2]string{field, text})
			}
		}
		m := fieldsOf(fields)
		whole := readMessage(t, m)
		checkReplay(t, whole, m)
		blocks := readChat(t, streamed(fields, rapid.IntRange(1, 7).Draw(t, "pieces")))
		checkReplay(t, blocks, m)
		if len(fields) > 2 {
			return // which of the others repeats the first depends on which that is
		}
		// Only their order may differ: of a field that begins with white space a stream
		// does not know yet that it is the first.
		a, b := strings.Split(reasoningOf(whole), " "), strings.Split(reasoningOf(blocks), " ")
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("in one piece %s\nas a stream  %s", reasoningOf(whole), reasoningOf(blocks))
		}
	})
}

// TestThinkBlockOnItsOwnLinesIsReasoning: one that has its lines for itself; prose about
// tags stays. Either way the content goes back as it came.
func TestThinkBlockOnItsOwnLinesIsReasoning(t *testing.T) {
	for content, want := range map[string]struct{ text, thoughts string }{
		"Sure.\n<think>hm</think>\n42.":                         {"Sure.\n42.", "hm"},
		"Sure.\n\n<think>\nhm\n\nso\n</think>\n\n42.":           {"Sure.\n\n42.", "hm\n\nso"},
		"<think>a</think>Sure.\n<think>b</think>\n42.":          {"Sure.\n42.", "a\n\nb"},
		"The tag <think> opens, </think> closes.\n":             {"The tag <think> opens, </think> closes.\n", ""},
		"Write it so:\n```\n<think>hm</think>\n```\nThat is it": {"Write it so:\n```\n<think>hm</think>\n```\nThat is it", ""},
		"Sure.\n`<think>hm</think>`\n42.":                       {"Sure.\n`<think>hm</think>`\n42.", ""},
	} {
		var o rawjson.Object
		o.SetString("role", "assistant")
		o.SetString("content", content)
		blocks := readMessage(t, o.Bytes())
		r := &llm.Response{Blocks: blocks}
		if r.Text() != want.text || r.Reasoning() != want.thoughts {
			t.Errorf("%q: text %q, reasoning %q", content, r.Text(), r.Reasoning())
		}
		checkReplay(t, blocks, o.Bytes())
		for n := 1; n < 9; n++ {
			var b strings.Builder
			for at := 0; at < len(content); at += n {
				fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", rawjson.AppendString(nil, content[at:min(at+n, len(content))]))
			}
			b.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			blocks := readChat(t, b.String())
			if got, want := reasoningOf(blocks), reasoningOf(readMessage(t, o.Bytes())); got != want {
				t.Errorf("%q by %d: %s, want %s", content, n, got, want)
			}
			checkReplay(t, blocks, o.Bytes())
		}
	}
}
