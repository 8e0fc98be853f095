package thinktags

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/llm/framing"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"pgregory.net/rapid"
)

// split gives the chunks to s and joins the pieces of one kind.
func split(s *Splitter, chunks ...string) (joined []Piece) {
	take := func(pieces []Piece) {
		for _, p := range pieces {
			if n := len(joined); n > 0 && joined[n-1].Kind == p.Kind && p.Kind != Close {
				joined[n-1].Text += p.Text
			} else {
				joined = append(joined, p)
			}
		}
	}
	for _, c := range chunks {
		take(s.Write(c))
	}
	take(s.Close())
	return joined
}

// show writes pieces for the eye: {open} reasoning {close} and text in brackets.
func show(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&b, "%s%q ", map[Kind]string{Text: "T", Open: "O", Reasoning: "R", Close: "C", Reclassify: "I"}[p.Kind], p.Text)
	}
	return strings.TrimSpace(b.String())
}

func bytewise(s string) (chunks []string) {
	for i := range len(s) {
		chunks = append(chunks, s[i:i+1])
	}
	return chunks
}

// manyTicks are one too many for code.
var manyTicks = strings.Repeat("`", 32)

var splitCases = []struct{ name, in, want string }{
	{"nothing", "", ``},
	{"text", "Hello\n\nworld\n", `T"Hello\n\nworld\n"`},
	{"white space only", " \n\t", `T" \n\t"`},
	{"one block", "\n<think>\nhm\n</think>\n\nHello", `O"\n<think>\n" R"hm" C"\n</think>\n\n" T"Hello"`},
	{"no white space", "<think>hm</think>Hello", `O"<think>" R"hm" C"</think>" T"Hello"`},
	{"any case", "<ThInK>hm</THINK> x", `O"<ThInK>" R"hm" C"</THINK> " T"x"`},
	{"other names", "<antthinking>a</antthinking><thought>b</thought><thinking>c</thinking>d", `O"<antthinking>" R"a" C"</antthinking>" O"<thought>" R"b" C"</thought>" O"<thinking>" R"c" C"</thinking>" T"d"`},
	{"the name has to be the same", "<thinking>a</think>b</thinking>c", `O"<thinking>" R"a</think>b" C"</thinking>" T"c"`},
	{"empty block", "<think>\n\n</think>\n\nHello", `O"<think>\n\n" C"</think>\n\n" T"Hello"`},
	{"several blocks", "<think>a</think>\n\n <think>\nb\n</think>\nc", `O"<think>" R"a" C"</think>\n\n " O"<think>\n" R"b" C"\n</think>\n" T"c"`},
	{"block after text", "<think>a</think>b\n<think>c</think>\n</think>\nd", `O"<think>" R"a" C"</think>" T"b\n" O"<think>" R"c" C"</think>\n" T"</think>\nd"`},
	{"prose about tags", "The tag <think> opens\n</think>\nand closes", `T"The tag <think> opens\n</think>\nand closes"`},
	{"unclosed", "<think>\nhm\n\n", `O"<think>\n" R"hm\n\n"`},
	{"unclosed in the closing tag", "<think>hm\n</thin", `O"<think>" R"hm\n</thin"`},
	{"unclosed at once", " <think>\n", `O" <think>\n"`},
	{"cut opening tag", "\n<thin", `T"\n<thin"`},
	{"closed at the end", "<think>a</think> \n", `O"<think>" R"a" C"</think> \n"`},
	{"cut second tag", "<think>a</think> <thin", `O"<think>" R"a" C"</think> " T"<thin"`},
	{"other white space", "\v\f\r\n<think>\ta\u00a0</think>b", `O"\v\f\r\n<think>\t" R"a\u00a0" C"</think>" T"b"`},
	{"nearly a tag", "<thinker>a</thinker>", `T"<thinker>a</thinker>"`},
	{"tag with white space inside", "<think >a</think >", `T"<think >a</think >"`},
	{"less than", "<think>1 < 2 </ << <</think>x", `O"<think>" R"1 < 2 </ << <" C"</think>" T"x"`},
	{"code span", "<think>use `</think>` or ``a`</think>`` ok</think>x", "O\"<think>\" R\"use `</think>` or ``a`</think>`` ok\" C\"</think>\" T\"x\""},
	{"stray backtick", "<think>a ` b</think>x\ny`", "O\"<think>\" R\"a ` b\" C\"</think>\" T\"x\\ny`\""},
	{"stray backtick to the end", "<think>a ` b</think>x", "O\"<think>\" R\"a ` b\" C\"</think>\" T\"x\""},
	{"stray run before a span", "<think>`` `</think>` b</think>\nx", "O\"<think>\" R\"`` `</think>` b\" C\"</think>\\n\" T\"x\""},
	{"stray run before a span, and no more", "<think>`` `</think>` b\n</think>\nx", "O\"<think>\" R\"`` `</think>` b\" C\"\\n</think>\\n\" T\"x\""},
	{"span over lines is none", "<think>a `b\n</think>\n`x", "O\"<think>\" R\"a `b\" C\"\\n</think>\\n\" T\"`x\""},
	{"tag in a pair of backticks across it", "<think>`a</think>`b", "O\"<think>\" R\"`a</think>`b\""},
	{"blocks after a stray backtick", "<think>a ` b</think><think>c</think>d\n", "O\"<think>\" R\"a ` b\" C\"</think>\" O\"<think>\" R\"c\" C\"</think>\" T\"d\\n\""},
	{"fence", "<think>\n```xml\n</think>\n```\nok\n</think>\nx", "O\"<think>\\n\" R\"```xml\\n</think>\\n```\\nok\" C\"\\n</think>\\n\" T\"x\""},
	{"fence of tildes", "<think>a\n  ~~~~ `x\n</think>\n~~~\n ~~~~ \nok</think>x", "O\"<think>\" R\"a\\n  ~~~~ `x\\n</think>\\n~~~\\n ~~~~ \\nok\" C\"</think>\" T\"x\""},
	{"fence in a list", "<think>\n1. ```\n   </think>\n   ```\nok</think>x", "O\"<think>\\n\" R\"1. ```\\n   </think>\\n   ```\\nok\" C\"</think>\" T\"x\""},
	{"fence in a quote", "<think>\n> ```\n> </think>\n> ```\n</think>x", "O\"<think>\\n\" R\"> ```\\n> </think>\\n> ```\" C\"\\n</think>\" T\"x\""},
	{"fence on the line of the tag", "<think>```\n</think>\n```\n</think>\nx", "O\"<think>\" R\"```\\n</think>\\n```\" C\"\\n</think>\\n\" T\"x\""},
	{"three backticks on one line", "<think>\n```a```\n</think>\nx", "O\"<think>\\n\" R\"```a```\" C\"\\n</think>\\n\" T\"x\""},
	{"unclosed fence", "<think>\n```go\nx\n</think>\nHello `</think>`", "O\"<think>\\n\" R\"```go\\nx\" C\"\\n</think>\\n\" T\"Hello `</think>`\""},
	{"span in an unclosed fence", "<think>\n```go\n`</think>`\n</think>\nHello", "O\"<think>\\n\" R\"```go\\n`</think>`\" C\"\\n</think>\\n\" T\"Hello\""},
	{"fence closed by the end", "<think>\n```\n</think>\n```", "O\"<think>\\n\" R\"```\\n</think>\\n```\""},
	{"unclosed fences", "<think>\n```go\n</think><think>\n~~~\n```go\n</think>\nx\n<think>", "O\"<think>\\n\" R\"```go\" C\"\\n</think>\" O\"<think>\\n\" R\"~~~\\n```go\" C\"\\n</think>\\n\" T\"x\\n<think>\""},
	{"too many backticks", "<think>" + manyTicks + "</think>" + manyTicks + "\n", "O\"<think>\" R\"" + manyTicks + "\" C\"</think>\" T\"" + manyTicks + "\\n\""},
	{"too many backticks for a fence", "<think>" + manyTicks + "\n</think>" + manyTicks + "\n", "O\"<think>\" R\"" + manyTicks + "\" C\"\\n</think>\" T\"" + manyTicks + "\\n\""},
	{"many backticks", "<think>" + manyTicks[1:] + "a</think>" + manyTicks[1:] + "\n", "O\"<think>\" R\"" + manyTicks[1:] + "a</think>" + manyTicks[1:] + "\\n\""},
	{"CRLF", "<think>\r\n```\r\n</think>\r\n```\r\nhm\r\n</think>\r\nx", "O\"<think>\\r\\n\" R\"```\\r\\n</think>\\r\\n```\\r\\nhm\" C\"\\r\\n</think>\\r\\n\" T\"x\""},

	{"only closed", "Okay.\n</think>\n\nHello", `T"Okay." I"\n</think>\n\n" T"Hello"`},
	{"only closed, at once", "</think>\n\nHello", `I"</think>\n\n" T"Hello"`},
	{"only closed, at the end", "Okay.\n  </THOUGHT>  ", `T"Okay." I"\n  </THOUGHT>  "`},
	{"only closed, then a block", "a\n</think>\n<think>b</think>c\n</think>\n", `T"a" I"\n</think>\n" O"<think>" R"b" C"</think>" T"c\n</think>\n"`},
	{"only closed, twice", "a\n</think>\nb\n</think>\nc", `T"a" I"\n</think>\n" T"b\n</think>\nc"`},
	{"only closed, not alone", "a\n</think> b\nc </think>\n`</think>`\n", "T\"a\\n</think> b\\nc </think>\\n`</think>`\\n\""},
	{"only closed, not alone and then alone", "a </think>\n</think></think>\n\n </think>\nb", `T"a </think>\n</think></think>" I"\n\n </think>\n" T"b"`},
	{"only closed, in a fence", "a\n```\n</think>\n```\nb", "T\"a\\n```\\n</think>\\n```\\nb\""},
	{"only closed, after a fence", "a\n```\n<think>\n```\n</think>\nb", "T\"a\\n```\\n<think>\\n```\" I\"\\n</think>\\n\" T\"b\""},
	{"only closed, in an unclosed fence", "a\n```\n</think>\nb", "T\"a\\n```\\n</think>\\nb\""},
	{"only closed, opening tag talked about", "a `<think>` b\n</think>\nc", "T\"a `<think>` b\" I\"\\n</think>\\n\" T\"c\""},
	{"lines of its own", "a\n<think>\nb\n</think>\nc", `T"a\n" O"<think>\n" R"b" C"\n</think>\n" T"c"`},
	{"one line of its own", "a\n\n <Think> b </THINK> \r\n\nc", `T"a\n\n " O"<Think> " R"b" C" </THINK> \r\n\n" T"c"`},
	{"several of its own", "a\n<think>b</think>\n<think>\n\nc\nd\n\n</think>\n<thought>e</thought>\nf", `T"a\n" O"<think>" R"b" C"</think>\n" O"<think>\n\n" R"c\nd" C"\n\n</think>\n" O"<thought>" R"e" C"</thought>\n" T"f"`},
	{"of its own at the end", "a\n<think>b</think>", `T"a\n" O"<think>" R"b" C"</think>"`},
	{"lines of its own at the end", "a\n<think>\nb\n  </think>", `T"a\n" O"<think>\n" R"b" C"\n  </think>"`},
	{"of its own and empty", "a\n<think></think>\n<think>\n</think>\nb", `T"a\n" O"<think>" C"</think>\n" O"<think>\n" C"</think>\n" T"b"`},
	{"prose on its line", "a\n<think> opens it\nand </think> closes it\n</think>\nb", `T"a\n<think> opens it\nand </think> closes it\n</think>\nb"`},
	{"prose after it", "a\n<think>b</think> is how\n<think>b</think>, or <think>c</think>\n", `T"a\n<think>b</think> is how\n<think>b</think>, or <think>c</think>\n"`},
	{"prose before it", "a: <think>b</think>\n- <think>c</think>\n> <think>d</think>\n", `T"a: <think>b</think>\n- <think>c</think>\n> <think>d</think>\n"`},
	{"not closed", "a\n<think>\nb\n<think>c</think>\n</thinking>", `T"a\n<think>\nb\n" O"<think>" R"c" C"</think>\n" T"</thinking>"`},
	{"the other is closed", "a\n<think>\n<thought>\nb\n</thought>\nc", `T"a\n<think>\n" O"<thought>\n" R"b" C"\n</thought>\n" T"c"`},
	{"not closed on a line of its own", "a\n<think>\nb</think>\nc", `T"a\n<think>\nb</think>\nc"`},
	{"in code", "a\n```\n<think>b</think>\n```\n`<think>`\n    <think>c</think>\n\t<think>d</think>\n~~~\n<think>\ne\n</think>\n", "T\"a\\n```\\n<think>b</think>\\n```\\n`<think>`\\n    <think>c</think>\\n\\t<think>d</think>\\n~~~\\n<think>\\ne\\n</think>\\n\""},
	{"code in it", "a\n<think>\n```\nb\n```\n</think>\nc", "T\"a\\n\" O\"<think>\\n\" R\"```\\nb\\n```\" C\"\\n</think>\\n\" T\"c\""},
	{"after only closed", "a\n</think>\nb\n<think>c</think>\nd", `T"a" I"\n</think>\n" T"b\n" O"<think>" R"c" C"</think>\n" T"d"`},
}

func TestTagSplitter(t *testing.T) {
	for _, c := range splitCases {
		t.Run(c.name, func(t *testing.T) {
			var s Splitter
			if got := show(split(&s, c.in)); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.in, got, c.want)
			}
			if got := show(split(&s, bytewise(c.in)...)); got != c.want {
				t.Errorf("%q bytewise\n got %s\nwant %s", c.in, got, c.want)
			}
			for i := range len(c.in) {
				if got := show(split(&s, c.in[:i], "", c.in[i:])); got != c.want {
					t.Errorf("%q cut at %d\n got %s\nwant %s", c.in, i, got, c.want)
				}
			}
			if got := show(plainSplit(c.in, true)); got != c.want {
				t.Errorf("%q at once\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

func TestTagSplitterSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Splitter
		in   []string
		want string
	}{
		{"not implicit", Splitter{NoImplicit: true}, []string{"a\n</think>\nb"}, `T"a\n</think>\nb"`},
		{"not implicit, opened", Splitter{NoImplicit: true}, []string{"<think>a</think>\nb"}, `O"<think>" R"a" C"</think>\n" T"b"`},
	} {
		if got := show(split(&c.s, c.in...)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	var s Splitter
	got := slices.Clone(s.Write("a\n</thi"))
	s.NoImplicit = true
	got = append(got, s.Write("nk>\nb")...)
	got = append(got, s.Close()...)
	if want := `T"a" T"\n</think>\nb"`; show(got) != want {
		t.Errorf("switched off on the way: %s, want %s", show(got), want)
	}
	if names := Reclassify.String() + Kind(9).String(); names != "reclassifyunknown" {
		t.Errorf("names: %s", names)
	}
}

// TestSplitterEmitsEarly checks what each write gives at once.
func TestSplitterEmitsEarly(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string // in turn: chunk, pieces
	}{
		{"text", []string{"Hel", `T"Hel"`, "lo <thin", `T"lo <thin"`, " \n", ``, "x", `T" \nx"`, "\n<", ``, "b", `T"\n<b"`}},
		{"plain text", []string{"<think>a</think>b", `O"<think>" R"a" C"</think>" T"b"`, " \n", `T" \n"`, "</think>", `T"</think>"`}},
		{"a block in the text", []string{"<think>a</think>b\n<", `O"<think>" R"a" C"</think>" T"b\n"`, "think> c", ``, "\n", `T"<think>" T" c\n"`, " <think>", `T" "`, "\n", ``, "c", ``, "\n</think>", ``, " \n", `O"<think>\n" R"c"`, "d", `C"\n</think> \n" T"d"`}},
		{"block", []string{"<th", ``, "ink>", ``, "\n", ``, "a", `O"<think>\n" R"a"`, " b ", `R" b"`, "c\n", `R" c"`, "</", ``, "x", `R"\n</x"`, "</THINK>", ``, "\n", ``, "y", `C"</THINK>\n" T"y"`}},
		{"backtick", []string{"<think>a `b", "O\"<think>\" R\"a `b\"", "c </think> d", `R"c"`, " e", ``, "` f", "R\" </think> d e` f\""}},
		{"stray backtick", []string{"<think>a `b </think> d", "O\"<think>\" R\"a `b\"", " e", ``, "\n", `C" </think> " T"d e\n"`}},
		{"fence", []string{"<think>\n```\nx\n</think> y", "O\"<think>\\n\" R\"```\\nx\"", "\n```", ``, "\nz", "R\"\\n</think> y\\n```\\nz\""}},
		{"implicit", []string{"a\n</think>", `T"a"`, " ", ``, "\n", ``, "b", `I"\n</think> \n" T"b"`}},
		{"not implicit", []string{"a\n</think>", `T"a"`, " b", `T"\n</think> b"`}},
	} {
		var s Splitter
		for i := 0; i < len(c.steps); i += 2 {
			if got := show(s.Write(c.steps[i])); got != c.steps[i+1] {
				t.Errorf("%s: %q gives %s, want %s", c.name, c.steps[i], got, c.steps[i+1])
			}
		}
	}
}

func TestTagSplitterPassesPlainTextWithoutAllocation(t *testing.T) {
	for _, start := range []string{"x", "<think>x", "<think>x</think>y"} {
		var s Splitter
		s.Write(start)
		if n := testing.AllocsPerRun(100, func() { s.Write(" more words, `code`,\nand a < b") }); n != 0 {
			t.Errorf("after %q: %v allocations", start, n)
		}
	}
}

// TestTagSplitterIsLinear feeds contents that make the splitter hold much back and
// read it again, in small chunks and at once. A quadratic splitter takes many minutes;
// a linear one takes less than a second, so that the limit does not depend on the machine.
func TestTagSplitterIsLinear(t *testing.T) {
	size, runs := 1<<16, 350
	if os.Getenv("TRACT_TORTURE") != "" {
		size, runs = 1<<20, 1400
	}
	rising, falling := "", ""
	for n := 1; n < runs; n++ {
		rising += "<think>" + strings.Repeat("`", n) + "</think>"
		falling = "<think>\n" + strings.Repeat("`", n) + "\n</think>\n" + falling
	}
	for name, in := range map[string]string{
		"white space":      strings.Repeat("\n", size),
		"stray backtick":   "<think>`</think>" + strings.Repeat("x</think>", size/9),
		"runs":             "<think>` </think>" + strings.Repeat("``x", size/3),
		"unclosed fence":   "<think>\n```\n</think>" + strings.Repeat("x\n</think>\n", size/11),
		"unclosed fences":  strings.Repeat("<think>\n```go\n</think>\n", size/23),
		"two open fences":  strings.Repeat("<think>\n```go\n</think>\n<think>\n~~~go\n</think>\n", size/46),
		"less than":        strings.Repeat("<", size),
		"blocks":           strings.Repeat("<think>a</think>", size/16),
		"blocks, one line": strings.Repeat("<think>`</think>", size/16),
		"rising runs":      rising,
		"falling fences":   falling,
		"closing tags":     strings.Repeat("</think> x\n", size/11),
		"lines of its own": "x\n" + strings.Repeat("<think>\n", size/8),
		"and others":       "x\n" + strings.Repeat("<think>\n<thought>\n<thinking>\n", size/30),
		"prose":            "x\n" + strings.Repeat("<think> x </think> x\n", size/20),
	} {
		for _, step := range []int{3, len(in)} {
			started := time.Now()
			var s Splitter
			n := 0
			for i := 0; i < len(in); i += step {
				for _, p := range s.Write(in[i:min(i+step, len(in))]) {
					n += len(p.Text)
				}
			}
			for _, p := range s.Close() {
				n += len(p.Text)
			}
			if n != len(in) {
				t.Errorf("%s: %d bytes come back as %d", name, len(in), n)
			}
			if took := time.Since(started); took > 2*time.Minute {
				t.Errorf("%s: %d bytes, %d at once, took %v", name, len(in), step, took)
			} else {
				t.Logf("%s: %d bytes, %d at once: %v", name, len(in), step, took)
			}
		}
	}
}

// plainSplit follows the rules on the whole content at once.
func plainSplit(in string, implicit bool) (pieces []Piece) {
	add := func(kind Kind, n int) {
		if n > 0 {
			pieces = append(pieces, Piece{kind, in[:n]})
		}
		in = in[n:]
	}
	if implicit && !opening.MatchString(in) {
		if start, end, ok := findAlone(in); ok {
			add(Text, start)
			add(Reclassify, end-start)
		}
	}
	for {
		m := opening.FindStringSubmatchIndex(in)
		if m == nil {
			start, end := findOwnLines(in)
			add(Text, start)
			if end == start {
				add(Text, len(in))
				return pieces
			}
			closing := ownClose.FindStringIndex(in[:end-start])
			from := opening.FindStringIndex(in)[1]
			to := max(from, closing[0])
			add(Open, from)
			add(Reasoning, to-from)
			_, n := around(in, 0, end-start-to)
			add(Close, n)
			continue
		}
		name := in[m[2]:m[3]]
		add(Open, m[1])
		start, end, ok := findClose(in, name)
		if !ok {
			add(Reasoning, len(in))
			return pieces
		}
		add(Reasoning, start)
		add(Close, end-start)
	}
}

var (
	opening    = regexp.MustCompile(`^[\s\v]*<((?i)think|thinking|thought|antthinking)>[\s\v]*`)
	mentioned  = regexp.MustCompile("(?:^|[^`])<((?i)think|thinking|thought|antthinking)>")
	aloneTag   = regexp.MustCompile(`^[\s\v]*</((?i)think|thinking|thought|antthinking)>[\s\v]*$`)
	fenceOpen  = regexp.MustCompile("^[-\\s\\v>*+.)0-9]*(?:(`{3,31})[^`]*|(~{3,31})(?:[^~].*)?)$")
	ownOpen    = regexp.MustCompile(`^[ \r\v\f]{0,3}<((?i)think|thinking|thought|antthinking)>`)
	ownClose   = regexp.MustCompile(`[\s\v]*</((?i)think|thinking|thought|antthinking)>$`)
	fenceClose = regexp.MustCompile("^[\\s\\v>]*(```+|~~~+)[\\s\\v]*$")
)

// fenceAfter is the fence that is open after the line, when it was before.
func fenceAfter(fence, line string) string {
	if fence == "" {
		if m := fenceOpen.FindStringSubmatch(line); m != nil {
			return m[1] + m[2]
		}
	} else if m := fenceClose.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[1], fence) {
		return ""
	}
	return fence
}

// findAlone finds the tag that ends reasoning without an opening tag, with the
// white space around it.
func findAlone(in string) (start, end int, ok bool) {
	fence, at := "", 0
	for line := range strings.SplitAfterSeq(in, "\n") {
		bare := strings.TrimSuffix(line, "\n")
		if fence == "" && mentioned.MatchString(bare) {
			return 0, 0, false
		}
		if fence == "" && aloneTag.MatchString(bare) {
			start, end = around(in, at, at+len(line))
			return start, end, true
		}
		fence = fenceAfter(fence, bare)
		at += len(line)
	}
	return 0, 0, false
}

// findOwnLines finds a block that has its lines for itself; of none it gives the same
// offset twice.
func findOwnLines(in string) (start, end int) {
	fence, at := "", 0
	lines := strings.SplitAfter(in, "\n")
	for i, line := range lines {
		bare := strings.TrimSuffix(line, "\n")
		if m := ownOpen.FindStringSubmatchIndex(bare); m != nil && fence == "" && i > 0 {
			start, closing := at+m[2]-1, strings.ToLower("</"+bare[m[2]:m[3]]+">")
			text := strings.ToLower(strings.Trim(bare[m[1]:], whiteSpace))
			if inner, ok := strings.CutSuffix(text, closing); ok && !strings.Contains(inner, closing) {
				return start, at + len(strings.TrimRight(bare, whiteSpace))
			}
			end := at + len(line)
			for _, later := range lines[i+1:] {
				if text == "" && strings.ToLower(strings.Trim(later, whiteSpace)) == closing {
					return start, end + len(strings.TrimRight(later, whiteSpace))
				}
				end += len(later)
			}
		}
		fence = fenceAfter(fence, bare)
		at += len(line)
	}
	return len(in), len(in)
}

// findClose finds the closing tag of a block, with the white space around it.
func findClose(in, name string) (start, end int, ok bool) {
	tag := regexp.MustCompile(`(?i)</` + name + `>`)
	fence, at, caught := "", 0, []int(nil)
	for line := range strings.SplitAfterSeq(in, "\n") {
		bare := strings.TrimSuffix(line, "\n")
		previous := fence
		fence = fenceAfter(fence, bare)
		if previous != "" && fence == "" {
			caught = nil
		}
		if m := tag.FindStringIndex(blankSpans(bare)); m != nil {
			if fence == "" {
				start, end = around(in, at+m[0], at+m[1])
				return start, end, true
			}
			if caught == nil {
				caught = []int{at + m[0], at + m[1]}
			}
		}
		at += len(line)
	}
	if caught == nil {
		return 0, 0, false
	}
	start, end = around(in, caught[0], caught[1])
	return start, end, true
}

// around widens in[start:end] to the white space around it.
func around(in string, start, end int) (int, int) {
	return len(strings.TrimRight(in[:start], whiteSpace)), len(in) - len(strings.TrimLeft(in[end:], whiteSpace))
}

// blankSpans overwrites the code spans of a line.
func blankSpans(line string) string {
	b := []byte(line)
	runs := slices.DeleteFunc(regexp.MustCompile("`+").FindAllStringIndex(line, -1), func(r []int) bool { return r[1]-r[0] > 31 })
	for i := 0; i < len(runs); i++ {
		for j := i + 1; j < len(runs); j++ {
			if runs[j][1]-runs[j][0] == runs[i][1]-runs[i][0] {
				for k := runs[i][0]; k < runs[j][1]; k++ {
					b[k] = '`'
				}
				i = j
				break
			}
		}
	}
	return string(b)
}

// checkSplit splits in as cut into chunks and compares with plainSplit.
func checkSplit(t interface{ Fatalf(string, ...any) }, in string, implicit bool, chunks []string) {
	s := Splitter{NoImplicit: !implicit}
	pieces := split(&s, chunks...)
	whole := ""
	for _, p := range pieces {
		whole += p.Text
	}
	if whole != in {
		t.Fatalf("%q comes back as %q", in, whole)
	}
	if got, want := show(pieces), show(plainSplit(in, implicit)); got != want {
		t.Fatalf("%q, implicit %t\n got %s\nwant %s", chunks, implicit, got, want)
	}
}

func TestTagSplitterProperties(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"<think>", "</think>", "</think>", "<Thinking>", "</thinking>", "</thought>", "<think", "</", "<", ">", "think>", "`", "`", "``", "```", "````", "~~~",
		"\n", "\n", "\n", " ", "\r\n", "\t", "a", "word ", "> ", "- ", "1. ", "~", "é", "\n```\n", "\n</think>\n", "`</think>`",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(part, 0, 25).Draw(t, "parts"), "")
		if rapid.Bool().Draw(t, "opened") {
			in = "<think>" + in
		}
		implicit := rapid.Bool().Draw(t, "implicit")
		checkSplit(t, in, implicit, []string{in})
		checkSplit(t, in, implicit, bytewise(in))
		for i := range len(in) {
			checkSplit(t, in, implicit, []string{in[:i], in[i:]})
		}
	})
}

func FuzzTagSplitter(f *testing.F) {
	for _, c := range splitCases {
		f.Add(c.in, uint8(3))
	}
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		var chunks []string
		for i := 0; i < len(in); i += 1 + int(size) {
			chunks = append(chunks, in[i:min(i+1+int(size), len(in))])
		}
		checkSplit(t, in, true, chunks)
		checkSplit(t, in, false, []string{in})
	})
}

// contents are the pieces of content that a recorded chat or Ollama answer has.
func contents(t *testing.T, row wireRow) (deltas []string) {
	t.Helper()
	take := func(b []byte) {
		v, err := rawjson.Parse(b)
		if err != nil {
			return // [DONE], or cut off
		}
		deltas = append(deltas, v.Get("message", "content").Text())
		for choice := range v.Get("choices").Elements() {
			deltas = append(deltas, choice.Get("message", "content").Text()+choice.Get("delta", "content").Text())
		}
	}
	text := row.read(t)
	switch row.Container {
	case "sse":
		for f, err := range framing.ServerSentEvents(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			take(f.Data)
		}
	case "ndjson":
		for line := range strings.Lines(text) {
			take([]byte(line))
		}
	default:
		take([]byte(text))
	}
	return deltas
}

// TestTagSplitterOnRecordedAnswers compares with the answers in the corpus: those
// with tags are split as expected, all others are left alone.
func TestTagSplitterOnRecordedAnswers(t *testing.T) {
	tagged, plain := 0, 0
	for _, row := range wireRows(t) {
		if row.API != "chat" && row.API != "ollama" {
			continue
		}
		deltas := contents(t, row)
		var want []string
		raw := ""
		for _, r := range row.Expected.Reasoning {
			if r.Form == "tags" {
				want = append(want, strings.TrimSpace(r.Text))
				raw += r.RawText
			}
		}
		all := strings.Join(deltas, "")
		for name, chunks := range map[string][]string{"deltas": deltas, "whole": {all}, "bytewise": bytewise(all)} {
			var s Splitter
			pieces := split(&s, chunks...)
			text, got := gather(pieces)
			if len(want) == 0 {
				if text != all {
					t.Errorf("%s %s: split without need: %.300s", row.File, name, show(pieces))
				}
				continue
			}
			if !slices.Equal(got, want) || strings.TrimSpace(text) != strings.TrimSpace(row.Expected.Text) {
				t.Errorf("%s %s: %.300s", row.File, name, show(pieces))
			}
			if !strings.Contains(all, raw) || strings.TrimSpace(raw) != strings.Join(got, "") {
				t.Errorf("%s %s: raw text %.100q", row.File, name, raw)
			}
		}
		if len(want) > 0 {
			tagged++
		} else if all != "" {
			plain++
		}
	}
	if tagged != 5 || plain < 50 {
		t.Errorf("%d answers with tags and %d without", tagged, plain)
	}
	t.Logf("%d answers with tags, %d without", tagged, plain)
}

// gather is the text and the blocks of reasoning that pieces make.
func gather(pieces []Piece) (text string, blocks []string) {
	for _, p := range pieces {
		switch p.Kind {
		case Text:
			text += p.Text
		case Reclassify:
			text, blocks = "", append(blocks, text)
		case Open:
			blocks = append(blocks, "")
		case Reasoning:
			blocks[len(blocks)-1] += p.Text
		case Close:
		}
	}
	return text, blocks
}

func BenchmarkTagSplitter(b *testing.B) {
	texts := strings.SplitAfter(strings.Repeat("The user wants `x` and a < b.\n\nSo we do it. ", 100), " ")
	for name, start := range map[string]string{"reasoning": "<think>", "text": "x", "after a block": "<think>x</think>y"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(strings.Join(texts, ""))))
			b.ReportAllocs()
			var s Splitter
			for b.Loop() {
				s.Write(start)
				for _, w := range texts {
					s.Write(w)
				}
				s.Close()
			}
		})
	}
}

// wireRow is what the tests here need of a line of the corpus's manifest.
type wireRow struct {
	File, Container, API string
	Expected             struct {
		Text      string
		Reasoning []struct {
			Text, Form string
			RawText    string `json:"raw_text"`
		}
	}
}

func wireRows(t *testing.T) (rows []wireRow) {
	t.Helper()
	if os.Getenv("TRACT_SHARED") == "" {
		t.Skip("TRACT_SHARED is not set")
	}
	manifest := wireRow{File: "manifest.jsonl"}.read(t)
	for line := range strings.Lines(manifest) {
		var row wireRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func (r wireRow) read(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(os.Getenv("TRACT_SHARED"), "wire", r.File))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
