package format

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file in testdata. ESC is shown as ␛ there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	got = strings.ReplaceAll(got, "\x1b", "␛")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-update mends it):\n%s\nwant:\n%s", file, got, want)
	}
}

// story writes a history. Every commit has a name.
type story struct {
	t       testing.TB
	store   objects.Store
	tip     *commit.Commit
	commits []*commit.Commit
	names   map[string]*commit.Commit
}

func newStory(t testing.TB) *story {
	return &story{t: t, store: objects.Memory(), names: map[string]*commit.Commit{}}
}

var began = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func (s *story) add(name string, d commit.Draft) *commit.Commit {
	s.t.Helper()
	d.Time = began.Add(time.Duration(len(s.commits)) * 90 * time.Second)
	commits, put, err := commit.Write(s.tip, d)
	if err == nil {
		err = s.store.Apply(s.t.Context(), objects.Batch{Put: put})
	}
	if err == nil {
		err = commit.LoadAll(s.t.Context(), s.store, commits...)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.tip = commits[0]
	s.commits = append(s.commits, s.tip)
	s.names[name] = s.tip
	return s.tip
}

func (s *story) compile(o compile.Options) *compile.Prompt {
	s.t.Helper()
	p, err := compile.Chain(s.t.Context(), s.store, s.tip.ID, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// weather is a short conversation with a bit of everything.
func weather(t testing.TB) *story {
	s := newStory(t)
	reply := &commit.Origin{
		Source: commit.SourceModel, Session: "main", Provider: "anthropic", Dialect: "messages", Endpoint: "api.anthropic.com",
		Model: "claude-sonnet-4-5", ResponseID: "msg_01", Finish: "tool_use", Manifest: objects.Hash([]byte("manifest")),
		Usage:    content.Usage{Input: 1204, Output: 310, Reasoning: 120, Cached: 1000},
		Settings: map[string]string{"model": "claude-sonnet-4-5", "reasoning.effort": "high"},
		Started:  began, FirstToken: 800 * time.Millisecond, Duration: 4200 * time.Millisecond,
	}
	s.add("rules", commit.Draft{Block: content.Text{Of: content.KindSystem, Name: "rules", Text: "Answer in one sentence.\nSay °C."}, Author: "Ada"})
	s.add("ask", commit.Draft{Block: content.User("What is the weather in 東京?\n\nAnd in Zürich?"), Author: "Ada", Key: commit.Key{Text: "k1"}, Label: commit.Label{Text: "first try", Meta: map[string]string{"ticket": "T-7"}}})
	s.add("think", commit.Draft{Block: content.Reasoning{
		Format: content.FormatAnthropic, Source: "thinking", Text: "Two cities.\n\tI need the tool.\n",
		Wire: content.Form{Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: "c2VhbA==", Minted: "messages/claude-sonnet-4-5"}}.Wire(),
	}, Origin: reply})
	s.add("call", commit.Draft{Block: content.ToolCall{CallID: "toolu_01", Name: "weather", Arguments: `{"city": "東京"}`}, Index: 1, Origin: reply})
	s.add("result", commit.Draft{Block: content.ToolResult{CallID: "toolu_01", Text: "22 °C\nsunny"}, Origin: &commit.Origin{Source: commit.SourceTool}})
	s.add("hidden", commit.Draft{Block: content.Reasoning{Format: content.FormatAnthropic, Wire: content.Form{Seal: content.Seal{Type: content.Redacted, Data: "eHh4"}}.Wire()}})
	s.add("answer", commit.Draft{Block: content.Assistant("22 °C in 東京, and I know nothing of Zürich."), Index: 1})
	s.add("picture", commit.Draft{Block: content.Media{Of: content.KindImage, MediaType: "image/png", Name: "sky.png", Data: strings.Repeat("x", 12_345)}, Author: "Ada"})
	s.add("thanks", commit.Draft{Block: content.User("line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n"), Index: 1, Author: "Ada"})
	s.add("pin", commit.Draft{Op: commit.Annotate, Target: s.names["answer"].ID, Priority: priority.Pinned, Block: content.Note("worth keeping"), Author: "Ada"})
	s.add("edit", commit.Draft{Op: commit.Edit, Target: s.names["ask"].ID, Block: content.User("What is the weather in 東京?"), Author: "Bob"})
	return s
}

// hostile is text that tries to control the terminal and to hide.
const hostile = "a\x1b[31mred\x1b]52;c;aGk=\x07\rover\r\nb\u202eevil\u2066x\u200b\u200d\ufeff\U000e0041\U000e0100" +
	"c\x9b2J\u009b2J\x7f\x00\xff\xc3(\xed\xa0\x80\ufe0f\ufe0f\u2028\u3164\u061c\tend"

// attack is a history whose every field is hostile.
func attack(t testing.TB, bad string) *story {
	s := newStory(t)
	wire := content.Form{Dialect: bad, ID: bad, Type: bad, Extra: []byte(bad), Seal: content.Seal{Type: content.Signature, Data: bad, Minted: bad}, Incomplete: true}.Wire()
	origin := &commit.Origin{
		Source: commit.SourceModel, Session: bad, Provider: bad, Dialect: bad, Endpoint: bad, Model: bad, ResponseID: bad, Finish: bad,
		Usage: content.Usage{Input: 1, Raw: []byte(bad)}, Settings: map[string]string{bad: bad}, Importer: bad, Original: map[string]string{bad: bad},
	}
	for i, b := range []content.Block{
		content.Text{Of: content.KindSystem, Name: bad, Text: bad},
		content.Text{Of: content.KindUser, Wire: wire, Text: bad},
		content.Reasoning{Wire: wire, Format: content.Format(bad), Source: bad, Text: bad, Open: bad, Close: bad},
		content.Reasoning{Wire: wire, Parts: []string{bad, bad}},
		content.ToolCall{Wire: wire, CallID: bad, Name: bad, Arguments: bad},
		content.ToolResult{Wire: wire, CallID: bad, Name: bad, Text: bad, IsError: true},
		content.ToolCall{Wire: wire, CallID: bad + "2", Name: bad, Arguments: bad},
		content.ToolResult{CallID: bad + "2", Parts: []byte(`[{"type":"text","text":"` + "\u202e\x7f" + `\u001b[31m"}]`)},
		content.Media{Wire: wire, Of: content.KindImage, MediaType: bad, Name: bad, URL: bad},
		content.Media{Of: content.KindFile, MediaType: bad, Name: bad, Data: bad},
		content.Native{Wire: wire, JSON: bad},
		content.Native{JSON: `{"type":"` + "\u202e\x7f" + `\u001b[31m"}`},
	} {
		s.add(string(rune('a'+i)), commit.Draft{Block: b, Author: bad, Key: commit.Key{Text: bad}, Origin: origin, Label: commit.Label{Text: bad, Meta: map[string]string{bad: bad}}})
	}
	s.add("note", commit.Draft{Op: commit.Annotate, Target: s.names["b"].ID, Priority: priority.Pinned, Block: content.Note(bad), Author: bad})
	s.add("edit", commit.Draft{Op: commit.Edit, Target: s.names["b"].ID, Block: content.User(bad + "!"), Author: bad})
	s.add("call", commit.Draft{Block: content.ToolCall{CallID: bad + "3", Name: bad, Arguments: bad}})
	return s
}

// listed is a commit of a story as a log command gives it.
func (s *story) listed(name string) Commit {
	c := s.names[name]
	l := Commit{Commit: c, Level: c.Kind.Traits().Level, Why: priority.WhyDefault, Turn: 1, Rev: fmt.Sprintf("~%d", s.tip.Depth-c.Depth)}
	if c == s.tip {
		l.Refs = []string{"HEAD -> main", "tag: v1"}
	}
	for _, n := range s.commits {
		if n.Target == c.ID && !c.ID.IsZero() {
			l.Notes = append(l.Notes, n)
			if n.Op == commit.Annotate {
				l.Level, l.Why = n.Priority, priority.Why("annotated: "+n.Block.String())
			}
		}
	}
	return l
}
