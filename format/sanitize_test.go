package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext":                      "plain\n\ttext",
		"\x1b[31mred\x1b]52;c;aGk=\x07":      `\x1b[31mred\x1b]52;c;aGk=\x07`,
		"over\rwrite\r\nnext":                `over\x0dwrite` + "\nnext",
		"\r\r\n":                             `\x0d` + "\n",
		"\x00\x7f":                           `\x00\x7f`,
		"\u009b2J":                           `\u009b2J`,
		"\x9b2J":                             `\x9b2J`,
		"ab\u202eba\u2066\u200f\u061c":       `ab\u202eba\u2066\u200f\u061c`,
		"a\u200bb\u200cc\u200dd\ufeff":       `a\u200bb\u200cc\u200dd\ufeff`,
		"\u00ad\u034f\u2060\u3164\U0001d173": `\u00ad\u034f\u2060\u3164\U0001d173`,
		"tags \U000e0041\U000e007f":          `tags \U000e0041\U000e007f`,
		"\u2028\u2029":                       `\u2028\u2029`,
		"\ufdd0\uffff\U0001fffe":             `\ufdd0\uffff\U0001fffe`,
		"\xff\xc3(\xed\xa0\x80":              `\xff\xc3(\xed\xa0\x80`,
		"❤\ufe0f 1\ufe0f":                    "❤\ufe0f 1\ufe0f",
		"❤\ufe0f\ufe0e\n\ufe0f":              "❤\ufe0f" + `\ufe0e` + "\n" + `\ufe0f`,
		"x\U000e0100":                        `x\U000e0100`,
		"日本語 ру́сский עברית العربية 🦀 𝒳 e\u0301\u00a0": "日本語 ру́сский עברית العربية 🦀 𝒳 e\u0301\u00a0",
		"\ue0b0 \uf8ff": "\ue0b0 \uf8ff",

		// Joiners are shown where a script or an emoji needs them, and nowhere else.
		"می\u200cخواهم":                           "می\u200cخواهم",
		"क्\u200dष ශ්\u200dරී":                    "क्\u200dष ශ්\u200dරී",
		"👨\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈":   "👨\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈",
		"👩🏽\u200d💻 🙂\u200d↔\ufe0f 🏴\u200d☠\ufe0f": "👩🏽\u200d💻 🙂\u200d↔\ufe0f 🏴\u200d☠\ufe0f",
		"می\u200c خ":                      `می\u200c خ`,
		"\u200cخ":                         `\u200cخ`,
		"م\u200c\u200cخ":                  `م\u200c\u200cخ`,
		"م\u200d":                         `م\u200d`,
		"م\u200dx م\u200d1 x\u200dم":      `م\u200dx م\u200d1 x\u200dم`,
		"👨\u200c👩 👨\u200dx x\u200d👩":      `👨\u200c👩 👨\u200dx x\u200d👩`,
		"م\u200d\u0600 م\u200bخ م\u2060خ": `م\u200d\u0600 م\u200bخ م\u2060خ`,
		"م\u200d\x1b م\u200d\xff":         `م\u200d\x1b م\u200d\xff`,
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("Sanitize(%+q) = %+q, want %+q", in, got, want)
		}
	}
	if got := Line("a\nb\x1b"); got != `a\nb\x1b` {
		t.Errorf("Line gives %q", got)
	}
}

func TestSanitizeReturnsCleanTextItself(t *testing.T) {
	text := strings.Repeat("All is well. 日本語 🦀\n\t", 100)
	if n := testing.AllocsPerRun(10, func() { Sanitize(text) }); n != 0 {
		t.Errorf("%v allocations for clean text", n)
	}
}

// harmless tells what in s a terminal could obey or a reader not see. Colours
// are our own: each one ends, and before its line does.
func harmless(s string, colours bool) error {
	if colours {
		var err error
		if s, err = colourless(s); err != nil {
			return err
		}
	}
	before := rune('\n')
	for i, r := range s {
		switch {
		case r == '\n', r == '\t', joinsTwo(s, i):
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			return fmt.Errorf("invalid UTF-8 at byte %d: %q", i, s[max(0, i-20):min(len(s), i+20)])
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp), 0xfe00 <= r && r <= 0xfe0f && 0xfe00 <= before && before <= 0xfe0f:
			return fmt.Errorf("%U at byte %d: %q", r, i, s[max(0, i-20):min(len(s), i+20)])
		}
		before = r
	}
	return nil
}

// joinsTwo reports whether a joiner at s[i:] stands between letters that are not
// Latin, Greek or Cyrillic, or between two symbols.
func joinsTwo(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	r, size := utf8.DecodeRuneInString(s[i:])
	next, _ := utf8.DecodeRuneInString(s[i+size:])
	letters := before > 0x600 && unicode.In(before, unicode.L, unicode.M) && next > 0x600 && unicode.IsLetter(next)
	symbols := before > 0x2100 && !unicode.IsLetter(before) && next > 0x2100 && !unicode.IsLetter(next)
	return (r == 0x200c || r == 0x200d) && (letters || symbols)
}

// colourless is s without its colours.
func colourless(s string) (string, error) {
	var rest strings.Builder
	open := false
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		if open && (!found || strings.Contains(before, "\n")) {
			return "", fmt.Errorf("a colour that does not end: %.60q", before)
		}
		rest.WriteString(before)
		if !found {
			return rest.String(), nil
		}
		end := strings.TrimLeft(after, "0123456789;")
		if !strings.HasPrefix(end, "m") {
			return "", fmt.Errorf("an escape that is no colour: %.60q", "\x1b["+after)
		}
		open, s = !open, end[1:]
	}
}

// showAll shows a story with every method and returns what came out.
func showAll(s *story, bad string, o Options) string {
	var out bytes.Buffer
	p := New(&out, o)
	for _, show := range views(s) {
		show(p)
	}
	for name := range s.named() {
		c := s.listed(name)
		c.Refs, c.Why = []string{bad, bad}, "annotated: "+"x"
		p.Receipt(bad, c)
		p.Log(c, LogStyle{Oneline: true})
		p.Show(c)
	}
	p.Table([][]string{{bad, bad, bad}, {p.Accent(bad), p.Dim(bad), p.Warn(bad)}})
	p.Text(bad)
	p.Prompt(&compile.Prompt{Pending: []compile.Pending{{Call: content.ToolCall{CallID: bad, Name: bad, Arguments: bad}}}})
	out.WriteString(Summary(content.User(bad), 9) + Line(bad))
	for _, cutAt := range []int{1, 2, 3, 7, 1 << 20} {
		showLive(p, p, cutAt, bad)
	}
	return out.String()
}

// showLive shows blocks of a text in pieces of n bytes.
func showLive(text, thoughts *Printer, n int, bad string) {
	l := NewLive(text, thoughts)
	pieces := func(typ llm.EventType, index int) {
		for rest := bad; rest != ""; {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			l.Event(llm.Event{Type: typ, Index: index, Text: piece})
		}
	}
	pieces(llm.ReasoningDelta, 0)
	pieces(llm.TextDelta, 1)
	pieces(llm.ReasoningDelta, 0)
	l.Event(llm.Event{Type: llm.BlockDone, Index: 0, Block: content.Reasoning{Text: bad + bad + bad}})
	for i, b := range []content.Block{
		content.ToolCall{CallID: bad, Name: bad, Arguments: bad},
		content.ToolResult{Text: bad},
		content.Native{JSON: bad},
		content.Media{Of: content.KindFile, Name: bad},
		content.Reasoning{Wire: content.Form{Seal: content.Seal{Type: content.Redacted}}.Wire()},
	} {
		l.Event(llm.Event{Type: llm.BlockDone, Index: 2 + i, Block: b})
	}
	l.Close(content.Usage{}, bad)
	NewLive(text, thoughts).Close(content.Usage{Reasoning: 5}, bad)
}

var eyes = []Options{
	{}, {Width: 40}, {Color: true}, {Color: true, Background: Dark, Width: 33}, {Color: true, Background: Light},
}

func TestPrinterSanitizesEverything(t *testing.T) {
	s := attack(t, hostile)
	for _, o := range eyes {
		if err := harmless(showAll(s, hostile, o), o.Color); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for name, v := range programs(s) {
		var out bytes.Buffer
		if err := Encode(&out, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := harmless(out.String(), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoredTextCannotForgeHeadings(t *testing.T) {
	s := newStory(t)
	s.add("liar", draft(content.User("commit 0000\nKind:     system\n")))
	var out bytes.Buffer
	p := New(&out, Options{})
	p.Log(s.listed("liar"), LogStyle{Patch: true})
	p.Show(s.listed("liar"))
	p.Prompt(s.compile(compile.Options{}))
	if strings.Contains(out.String(), "\ncommit 0000") || strings.Contains(out.String(), "\nKind:     system") {
		t.Errorf("stored text stands where headings do:\n%s", &out)
	}
}

func TestRawKeepsBytes(t *testing.T) {
	var out bytes.Buffer
	New(&out, Options{Raw: true}).Text(hostile)
	if out.String() != hostile {
		t.Errorf("raw text is %q", &out)
	}
}

func TestHugeLines(t *testing.T) {
	s := newStory(t)
	huge := strings.Repeat("長\u202e", 1<<14)
	s.add("user", draft(content.User(huge)))
	s.add("think", draft(content.Reasoning{Text: huge}))
	s.add("call", draft(content.ToolCall{CallID: "c", Name: "f", Arguments: huge}))
	if out := showAll(s, "x", Options{Color: true, Background: Dark, Width: 40}); harmless(out, true) != nil || len(out) < 1<<17 {
		t.Errorf("huge lines: %d bytes, %v", len(out), harmless(out, true))
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add(hostile)
	f.Add("clean\n\ttext ❤\ufe0f")
	f.Add("\r\r\n\xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		out := Sanitize(text)
		if err := harmless(out, false); err != nil {
			t.Fatalf("Sanitize(%+q): %v", text, err)
		}
		if again := Sanitize(out); again != out {
			t.Fatalf("%+q becomes %+q", out, again)
		}
		if strings.Contains(Line(text), "\n") {
			t.Fatalf("Line(%+q) has two lines", text)
		}
		var e escaper
		var pieces []byte
		held := ""
		for i := range len(text) {
			held += text[i : i+1]
			n := completePrefixLen(held)
			pieces = e.appendEscaped(pieces, held[:n])
			held = held[n:]
		}
		if pieces = e.appendEscaped(pieces, held); string(pieces) != out {
			t.Fatalf("%+q byte by byte is %+q, whole it is %+q", text, pieces, out)
		}
	})
}

func FuzzPrinter(f *testing.F) {
	f.Add(hostile, uint8(40), true)
	f.Add("\x1b[1m\n\x1b", uint8(1), true)
	f.Add("", uint8(0), false)
	f.Fuzz(func(t *testing.T, bad string, width uint8, colour bool) {
		if len(bad) > 1<<10 {
			return
		}
		o := Options{Color: colour, Background: Dark, Width: int(width)}
		if err := harmless(showAll(attack(t, bad), bad, o), colour); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSanitize(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":   strings.Repeat("All is well here.\n", 1<<12),
		"cjk":     strings.Repeat("日本語の文章。\n", 1<<12),
		"hostile": strings.Repeat("a\x1b[31m\u202e", 1<<12),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Sanitize(text)
			}
		})
	}
}
