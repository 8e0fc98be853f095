package format

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// terminals is where everything is shown.
var terminals = []struct {
	name string
	o    Options
}{
	{"pipe", Options{}},
	{"colour", Options{Color: true, Background: Dark, Width: 72, Now: began.Add(3 * time.Hour), Zone: time.FixedZone("", 3600)}},
	{"narrow", Options{Width: 40}},
}

// everywhere writes what show writes on each of the terminals.
func everywhere(show func(p *Printer)) string {
	var all strings.Builder
	for _, where := range terminals {
		fmt.Fprintf(&all, "======== %s\n", where.name)
		var out bytes.Buffer
		show(New(&out, where.o))
		all.Write(out.Bytes())
	}
	return all.String()
}

// views is everything a printer shows of a history.
func views(s *story) map[string]func(p *Printer) {
	log := func(style LogStyle) func(p *Printer) {
		return func(p *Printer) {
			for name := range s.named() {
				p.Log(s.listed(name), style)
			}
		}
	}
	before := *s
	before.tip = s.commits[len(s.commits)-3]
	compare := func(style DiffStyle) func(p *Printer) {
		return func(p *Printer) {
			p.Diff(diff.Prompts(before.compile(compile.Options{}), s.compile(compile.Options{Policy: priority.Policy{IncludeReasoning: true}})), style)
		}
	}
	return map[string]func(p *Printer){
		"log":     log(LogStyle{}),
		"oneline": log(LogStyle{Oneline: true}),
		"patch":   log(LogStyle{Patch: true}),
		"show": func(p *Printer) {
			for name := range s.named() {
				p.Show(s.listed(name))
			}
		},
		"receipt": func(p *Printer) {
			for name := range s.named() {
				p.Receipt("main", s.listed(name))
			}
		},
		"prompt": func(p *Printer) {
			pr := s.compile(compile.Options{Policy: priority.Policy{IncludeReasoning: true}})
			p.Prompt(pr)
			p.Tokens(pr.Tokens)
		},
		"explain": func(p *Printer) { p.Explain(s.compile(compile.Options{})) },
		"diff":    compare(DiffStyle{}),
		"words":   compare(DiffStyle{Word: true}),
		"stat":    compare(DiffStyle{Stat: true}),
		"history": func(p *Printer) {
			p.History(&diff.History{Base: s.commits[0].ID, OnlyA: s.commits[1:3], OnlyB: s.commits[3:]})
		},
	}
}

// named yields the names of the commits in their order.
func (s *story) named() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, c := range s.commits {
			for name, named := range s.names {
				if named == c && !yield(name) {
					return
				}
			}
		}
	}
}

func TestPrinterGoldens(t *testing.T) {
	for name, show := range views(weather(t)) {
		t.Run(name, func(t *testing.T) { golden(t, name+".txt", everywhere(show)) })
	}
}

func TestDiffOfEqualPromptsIsEmpty(t *testing.T) {
	s := weather(t)
	var out bytes.Buffer
	p := New(&out, Options{})
	p.Diff(diff.Prompts(s.compile(compile.Options{}), s.compile(compile.Options{})), DiffStyle{})
	p.History(&diff.History{Base: s.tip.ID})
	if out.Len() > 0 {
		t.Errorf("equal sides show %q", &out)
	}
}

func TestDiffByLinesAndWords(t *testing.T) {
	long := strings.Repeat("the same line\n", 20)
	tell := func(blocks ...content.Block) *compile.Prompt {
		s := newStory(t)
		for _, b := range blocks {
			s.add(b.Kind().String(), commit.Draft{Block: b})
		}
		return s.compile(compile.Options{Policy: priority.Policy{IncludeReasoning: true}})
	}
	thought := content.Reasoning{Text: "I should be brief and kind.", Wire: content.Form{Seal: content.Seal{Type: content.Signature, Data: "1"}}.Wire()}
	sealed := thought
	sealed.SetSeal(content.Seal{Type: content.Signature, Data: "2"})
	sealed.SetID("rs_1")
	a := tell(content.User(long+"one two three\n"+long+"old end\n"), thought, content.Assistant("It is so."))
	b := tell(content.User(long+"one 2 three\nfour\n"+long+"old end"), sealed, content.Assistant("It is so."))
	golden(t, "changes.txt", everywhere(func(p *Printer) {
		d := diff.Prompts(a, b)
		p.Diff(d, DiffStyle{})
		p.Diff(d, DiffStyle{Word: true})
		p.Diff(d, DiffStyle{Stat: true})
	}))
}

// TestDiffNamesPartsOnlyWithEqualText checks that the parts of a text are not named beside the text
// that differs, since they are that text, and are named when they are all that differs.
func TestDiffNamesPartsOnlyWithEqualText(t *testing.T) {
	tell := func(b content.Block) *compile.Prompt {
		s := newStory(t)
		s.add("reasoning", commit.Draft{Block: b})
		return s.compile(compile.Options{Policy: priority.Policy{IncludeReasoning: true}})
	}
	const one = "The same long first part, of which not a word changes."
	a := tell(content.Reasoning{Parts: []string{one, "two"}})
	for want, b := range map[string]*compile.Prompt{
		"\n-   two\n+   three\n":                        tell(content.Reasoning{Parts: []string{one, "three"}}),
		"the same words; what differs: parts\n":         tell(content.Reasoning{Parts: []string{one + "\n\ntwo"}}),
		"    the same words; what differs: id, parts\n": tell(content.Reasoning{Wire: content.Form{ID: "rs_1"}.Wire(), Text: one + "\n\ntwo"}),
	} {
		var out bytes.Buffer
		New(&out, Options{}).Diff(diff.Prompts(a, b), DiffStyle{})
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("the difference ends with %q, want %q", &out, want)
		}
	}
}

func TestDiffFoldsOnlyLongRuns(t *testing.T) {
	for _, c := range []struct {
		n             int
		before, after bool
		hidden        int
	}{
		{3, true, false, 0}, {4, true, false, 0}, {5, true, false, 2}, {9, false, true, 6}, {7, true, true, 0}, {8, true, true, 2}, {1, true, true, 0}, {4, false, false, 4},
	} {
		if from, to := foldRange(c.n, c.before, c.after); to-from != c.hidden {
			t.Errorf("of %d lines, %v before and %v after, %d are folded, not %d", c.n, c.before, c.after, to-from, c.hidden)
		}
	}
}

func TestTableAlignsVisibleWidth(t *testing.T) {
	golden(t, "table.txt", everywhere(func(p *Printer) {
		p.Table([][]string{
			{p.Accent("* main"), "3fa2c1d", "the weather in 東京 and elsewhere, at some length"},
			{"  日本語", p.Dim("9c0ffee"), p.Warn("gone") + " since\nyesterday"},
			{"  e\u0301te\u0301", "", "\x1b[31mred\x1b[0m"},
			{"alone"},
			{},
		})
	}))
	var out bytes.Buffer
	p := New(&out, Options{})
	p.Table([][]string{{"日本", "x"}, {"abcd", "x"}, {"e\u0301", "x"}})
	for line := range strings.Lines(out.String()) {
		if before, _, _ := strings.Cut(line, "x"); width(before) != 6 {
			t.Errorf("%q: the second column begins in cell %d, not 6", line, width(before))
		}
	}
}

func TestTableColorsCannotBeForged(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, Options{Color: true})
	forged := New(&out, Options{Color: true}).Warn("stored")
	p.Table([][]string{{p.Accent("mine"), forged}})
	if got := out.String(); !strings.Contains(got, p.Accent("mine")) || strings.Contains(got, forged) {
		t.Errorf("the table shows %q", got)
	}
}

func TestTextKeepsOwnColors(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, Options{Color: true})
	p.Text("a\n" + p.Dim("own\x1bwords") + "\x1b[2mb\x1b[22m\n")
	if want := "a\n\x1b[2mown\\x1bwords\x1b[22m\\x1b[2mb\\x1b[22m\n"; out.String() != want {
		t.Errorf("the text is %q, want %q", &out, want)
	}
}

func TestLinesFitNarrowTerminal(t *testing.T) {
	s := weather(t)
	for _, cells := range []int{40, 60} {
		var out bytes.Buffer
		p := New(&out, Options{Width: cells})
		for name := range s.named() {
			c := s.listed(name)
			c.Refs = nil
			p.Log(c, LogStyle{Oneline: true})
			p.Receipt("main", c)
		}
		p.History(&diff.History{OnlyA: s.commits})
		for line := range strings.Lines(out.String()) {
			if w := width(strings.TrimSuffix(line, "\n")); w > cells {
				t.Errorf("%q has %d cells, not %d", line, w, cells)
			}
		}
	}
}

func TestShadeCoversWholeLines(t *testing.T) {
	b := content.Reasoning{Text: "short\n\nwith\ttab\n" + strings.Repeat("long 長い ", 12)}
	s := newStory(t)
	s.add("b", commit.Draft{Block: b})
	for _, where := range []struct {
		o     Options
		shade string
	}{
		{Options{Color: true, Background: Dark, Width: 40}, "48;5;236"},
		{Options{Color: true, Background: Light, Width: 40}, "48;5;254"},
		{Options{Color: true, Width: 40}, ""},
	} {
		var out bytes.Buffer
		New(&out, where.o).Log(s.listed("b"), LogStyle{Patch: true})
		_, body, _ := strings.Cut(out.String(), "\n\n")
		for line := range strings.Lines(body) {
			seen, end := plain(line), strings.TrimSuffix(line, "\n")
			if where.shade == "" {
				if strings.Contains(line, "48;5") || strings.HasSuffix(strings.TrimSuffix(seen, "\n"), " ") && !strings.Contains(seen, "長い") {
					t.Errorf("a shade on an unknown background: %q", line)
				}
				continue
			}
			if w := width(strings.TrimSuffix(seen, "\n")); w%40 != 0 && w < 80 {
				t.Errorf("%q covers %d cells", line, w)
			}
			if !strings.Contains(line, where.shade) || !strings.HasSuffix(end, "m") {
				t.Errorf("%q: want the shade %s, ended before the line feed", line, where.shade)
			}
		}
	}
}

// plain is text without SGR sequences.
func plain(s string) string {
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			return s
		}
		s = s[:at] + s[at+strings.IndexByte(s[at:], 'm')+1:]
	}
}

func TestSummaries(t *testing.T) {
	seal := func(k content.SealType) content.Wire {
		return content.Form{Seal: content.Seal{Type: k, Data: "x"}}.Wire()
	}
	for _, c := range []struct {
		b     content.Block
		width int
		want  string
	}{
		{nil, 0, ""},
		{content.User("\n---\n\n  Hello,\tworld  \nmore"), 0, "Hello, world …"},
		{content.User("Hello\n\n  \n\n"), 0, "Hello"},
		{content.User("Hello\nmore"), 7, "Hello …"},
		{content.User("Hello\nmore"), 6, "Hello…"},
		{content.User("***\n\nHello"), 0, "Hello …"},
		{content.ToolResult{Text: "no\nnever", IsError: true}, 0, "error: no …"},
		{content.User("***\n"), 0, "***"},
		{content.User("日本語のとても長い文章"), 9, "日本語の…"},
		{content.User(strings.Repeat("x", 1<<20)), 5, "xxxx…"},
		{content.User(strings.Repeat("\u0301", 1<<16) + "x"), 5, ""},
		{content.Reasoning{Wire: seal(content.Redacted)}, 0, "[redacted]"},
		{content.Reasoning{Wire: seal(content.Encrypted)}, 0, "[encrypted]"},
		{content.Reasoning{Wire: seal(content.Signature)}, 0, "[signature only]"},
		{content.Reasoning{}, 0, "[empty]"},
		{content.Reasoning{Parts: []string{"**Plan**", "b"}}, 0, "**Plan** …"},
		{content.ToolCall{Name: "ls", Arguments: "{\n  \"path\": \"/\"\n}"}, 0, `ls({ "path": "/" })`},
		{content.ToolResult{Text: "no", IsError: true}, 0, "error: no"},
		{content.ToolResult{Parts: []byte(`[{"type":"text","text":"hi"},{"type":"image"}]`)}, 0, "hi"},
		{content.ToolResult{Parts: []byte(`[{"type":"image"}]`)}, 0, `[{"type":"image"}]`},
		{content.Media{Of: content.KindImage, Name: "cat.png", MediaType: "image/png", Data: strings.Repeat("x", 12_345)}, 0, "[image cat.png, image/png, 12.3 kB]"},
		{content.Media{Of: content.KindFile, Data: strings.Repeat("x", 2_500_000)}, 0, "[file, 2.5 MB]"},
		{content.Media{Of: content.KindFile, URL: "https://x.org/a.pdf"}, 0, "[file https://x.org/a.pdf]"},
		{content.Native{JSON: `{"type":"web_search_call"}`}, 0, "web_search_call"},
		{content.Native{JSON: `?`}, 0, "native"},
	} {
		got := Summary(c.b, c.width)
		if strings.HasPrefix(got, "\u0301") { // marks upon nothing: any cut will do
			got = ""
		}
		if got != c.want {
			t.Errorf("Summary(%.40v, %d) = %q, want %q", c.b, c.width, got, c.want)
		}
		if c.width > 0 && width(got) > c.width {
			t.Errorf("%q is wider than %d cells", got, c.width)
		}
	}
}

// TestJSONSummaryHasNoMark: the mark that a text has more lines is for people.
func TestJSONSummaryHasNoMark(t *testing.T) {
	s := newStory(t)
	s.add("long", draft(content.User("Hello\nmore")))
	var out bytes.Buffer
	if err := Encode(&out, CommitJSON(s.listed("long"))); err != nil || !strings.Contains(out.String(), `"summary": "Hello"`) {
		t.Errorf("%v: %s", err, &out)
	}
	if got := SummaryJSON(s.names["long"], 0); got != "Hello" {
		t.Errorf("a list for programs says %q", got)
	}
}

func TestALogNamesTheBranchesOfSubAgents(t *testing.T) {
	s := newStory(t)
	s.add("call", draft(content.ToolCall{CallID: "call_1", Name: "task", Arguments: "{}"}))
	c := s.listed("call")
	c.Refs, c.Agents = nil, []string{"proxy/x/1/agent-7", "proxy/x/1/agent-8"}
	var out bytes.Buffer
	p := New(&out, Options{})
	p.Log(c, LogStyle{Oneline: true})
	p.Log(c, LogStyle{})
	const want = "-> proxy/x/1/agent-7, proxy/x/1/agent-8"
	if lines := strings.Split(out.String(), "\n"); !strings.Contains(lines[0], " ~0 "+want+" ") || !slices.Contains(lines, "Agent:    "+want) {
		t.Errorf("it shows %q", &out)
	}
}

func TestCommitsWithoutText(t *testing.T) {
	s := newStory(t)
	s.add("ask", draft(content.User("x")))
	s.add("pin", commit.Draft{Op: commit.Annotate, Target: s.tip.ID, Priority: priority.Pinned})
	c := s.listed("pin")
	c.Refs = nil
	var out bytes.Buffer
	p := New(&out, Options{})
	p.Receipt("main", c)
	p.Log(c, LogStyle{Oneline: true})
	p.Log(c, LogStyle{})
	said := "pinned " + s.commits[0].ID.Short() + "\n"
	want := "[main " + c.ID.Short() + "] " + said + c.ID.Short() + " ~0 " + said +
		"commit " + c.ID.String() + " ~0\nKind:     " + said + "Date:     Sat Nov 21 09:31:30 2026 +0000\n"
	if out.String() != want {
		t.Errorf("it shows %q, want %q", &out, want)
	}
}

func TestTokensListWhatIsLeftOut(t *testing.T) {
	for want, tokens := range map[string]compile.Tokens{
		"1,204 tokens effective, 3,000 raw; left out: 400, reasoning 1,396\n": {Raw: 3000, Effective: 1204, Hidden: 400, HiddenReasoning: 1396},
		"10 tokens effective, 1,234,567 raw; left out: 1,234,557\n":           {Raw: 1234567, Effective: 10, Hidden: 1234557},
		"0 tokens effective, 0 raw\n":                                         {},
	} {
		var out bytes.Buffer
		New(&out, Options{}).Tokens(tokens)
		if out.String() != want {
			t.Errorf("%+v: %q, want %q", tokens, &out, want)
		}
	}
}

func TestRelativeTimes(t *testing.T) {
	p := New(nil, Options{Now: began})
	for ago, want := range map[time.Duration]string{
		0: "0 seconds ago", time.Second: "1 second ago", 2 * time.Minute: "2 minutes ago", 26 * time.Hour: "26 hours ago",
		9 * 24 * time.Hour: "9 days ago", 400 * 24 * time.Hour: "13 months ago", 4000 * 24 * time.Hour: "10 years ago",
		-time.Minute: "2026-11-21 09:31:00 +0000",
	} {
		if got := p.relativeTime(began.Add(-ago)); got != want {
			t.Errorf("%s ago is %q, want %q", ago, got, want)
		}
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestPrinterKeepsFirstError(t *testing.T) {
	p := New(brokenPipe{}, Options{})
	for _, show := range views(weather(t)) {
		show(p)
	}
	live := NewLive(p, p)
	live.Event(llm.Event{Type: llm.TextDelta, Text: "x"})
	live.Close(content.Usage{}, "")
	if !errors.Is(p.Err(), errPipe) {
		t.Errorf("Err is %v", p.Err())
	}
	if p := New(&bytes.Buffer{}, Options{}); p.Err() != nil {
		t.Errorf("Err of a fresh printer is %v", p.Err())
	}
}

func TestPromptListsPendingCalls(t *testing.T) {
	s := newStory(t)
	s.add("ask", commit.Draft{Block: content.User("look")})
	s.add("call", commit.Draft{Block: content.ToolCall{CallID: "c1", Name: "ls", Arguments: "{}"}})
	var out bytes.Buffer
	New(&out, Options{}).Prompt(s.compile(compile.Options{}))
	if !strings.HasSuffix(out.String(), "\nwaits for a result: c1 ls({})\n") {
		t.Errorf("the prompt ends %q", &out)
	}
	out.Reset()
	New(&out, Options{}).Prompt(&compile.Prompt{Head: objects.ID{}})
	if out.Len() > 0 {
		t.Errorf("an empty prompt shows %q", &out)
	}
}
