package compile

import (
	"strings"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// answer adds a response of a model with what it reported.
func (s *story) answer(name, model string, input int64) {
	s.add(name, commit.Draft{Block: content.Assistant("ok"), Origin: &commit.Origin{
		Source: commit.SourceModel, Model: model, ResponseID: name, Usage: content.Usage{Input: input, Output: 10},
	}})
}

func (s *story) say(name string, bytes int) {
	s.add(name, commit.Draft{Block: content.User(strings.Repeat("x", bytes))})
}

func (s *story) counted(o Options) *Prompt {
	s.t.Helper()
	p, err := Chain(s.t.Context(), s.store, s.tip.ID, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// scaled is a story with three responses that reported once, twice and three times what
// is estimated.
func scaled(t *testing.T) *story {
	s := newStory(t)
	for i, name := range []string{"1", "2", "3"} {
		s.say("q"+name, 40_000)
		input := 0
		for _, e := range s.counted(Options{}).Entries {
			input += int(e.Tokens)
		}
		s.answer("a"+name, "m", int64(input*(i+1)))
	}
	return s
}

// sumsOfRows adds up the rows of what is sent, of other reasoning, and of the rest.
func sumsOfRows(p *Prompt) (t Tokens) {
	for i, n := range p.EntryTokens() {
		if of := t.sentOrHiddenSum(&p.Entries[i]); of != nil {
			*of, t.Raw = *of+n, t.Raw+n
		}
	}
	return t
}

func TestScaleIsTheMedianOfOneModel(t *testing.T) {
	s := newStory(t)
	s.say("q", 399)
	if p := s.counted(Options{}); p.Scale != (Scale{}) || p.Tokens.Effective < 100 || p.Tokens.Effective > 102 {
		t.Errorf("without a response: %+v, %+v", p.Scale, p.Tokens)
	}
	s = scaled(t)
	p := s.counted(Options{})
	if c := p.Scale; c.Model != "m" || c.Responses != 3 || c.Factor < 1.95 || c.Factor > 2 {
		t.Errorf("scale %+v, want about 2 from 3", c)
	}
	if p.Tokens.Effective < 58_000 || p.Tokens.Effective > 61_000 || sumsOfRows(p) != p.Tokens {
		t.Errorf("%+v, rows %+v", p.Tokens, sumsOfRows(p))
	}
	s.answer("silent", "m", 0)
	if c := s.counted(Options{}).Scale; c.Responses != 3 {
		t.Errorf("with a response that reported nothing: %+v", c)
	}
	s.answer("other", "n", 30_000)
	if c := s.counted(Options{}).Scale; c.Model != "n" || c.Responses != 1 || c.Factor > 1.1 {
		t.Errorf("another model: %+v", c)
	}
}

func TestScaleIsBounded(t *testing.T) {
	for input, want := range map[int64]float64{1: leastFactor, 1 << 50: mostFactor} {
		s := newStory(t)
		s.say("q", 400_000)
		s.answer("a", "m", input)
		if c := s.counted(Options{}).Scale; c.Factor != want {
			t.Errorf("%d tokens reported: %+v, want %v", input, c, want)
		}
	}
}

// TestLaterChangesDoNotChangeTheScale: requests had what stood then.
func TestLaterChangesDoNotChangeTheScale(t *testing.T) {
	for name, change := range map[string]func(s *story){
		"skip": func(s *story) {
			s.add("skip", commit.Draft{Op: commit.Annotate, Target: s.ids["q1"], Priority: priority.Skip})
		},
		"edit": func(s *story) {
			s.add("edit", commit.Draft{Op: commit.Edit, Target: s.ids["q2"], Block: content.User("short")})
		},
		"compress": func(s *story) {
			s.add("sum", commit.Draft{Op: commit.Compress, First: s.ids["q1"], Target: s.ids["a2"], Block: content.Text{Of: content.KindSummary, Text: "so"}})
		},
		"compress and expand": func(s *story) {
			s.add("sum", commit.Draft{Op: commit.Compress, First: s.ids["q1"], Target: s.ids["a2"], Block: content.Text{Of: content.KindSummary, Text: "so"}})
			s.add("expand", commit.Draft{Op: commit.Annotate, Target: s.ids["sum"], Priority: priority.Skip})
		},
	} {
		s := scaled(t)
		want := s.counted(Options{})
		change(s)
		got := s.counted(Options{})
		if got.Scale != want.Scale || sumsOfRows(got) != got.Tokens {
			t.Errorf("%s: scale %+v, want %+v; %+v, rows %+v", name, got.Scale, want.Scale, got.Tokens, sumsOfRows(got))
		}
		if name != "compress and expand" && got.Tokens.Effective > want.Tokens.Effective-19_000 {
			t.Errorf("%s: %d tokens, before %d", name, got.Tokens.Effective, want.Tokens.Effective)
		}
	}
}

// TestABudgetCountsAsThePromptDoes: what a prompt is said to take is a budget that it fits.
func TestABudgetCountsAsThePromptDoes(t *testing.T) {
	s := scaled(t)
	s.say("q4", 4001)
	all := s.counted(Options{})
	if p := s.counted(Options{Budget: all.Tokens.Effective}); p.Tokens != all.Tokens || p.Scale != all.Scale {
		t.Errorf("with a budget of it: %+v, want %+v", p.Tokens, all.Tokens)
	}
	p := s.counted(Options{Budget: all.Tokens.Effective - 1})
	if p.Entries[0].InPrompt || p.Tokens.Effective >= all.Tokens.Effective || p.Scale != all.Scale || sumsOfRows(p) != p.Tokens {
		t.Errorf("with one less: %+v of %+v", p.Tokens, all.Tokens)
	}
}

// TestScaleUsesSentEntriesOfABudget checks that the entries that a request with a budget sent are
// read from its manifest.
func TestScaleUsesSentEntriesOfABudget(t *testing.T) {
	s := newStory(t)
	s.say("q1", 400_000)
	s.add("a1", commit.Draft{Block: content.Assistant("ok")})
	s.say("q2", 40_000)
	asked := s.counted(Options{Budget: 20_000})
	m := &Manifest{Head: s.tip.ID, Options: Options{Budget: 20_000}}
	m.SetSentFlags(nil, asked.SentFlags())
	obj := m.Object()
	if err := s.store.Apply(t.Context(), objects.Batch{Put: []objects.Object{obj}}); err != nil {
		t.Fatal(err)
	}
	s.add("a2", commit.Draft{Block: content.Assistant("ok"), Origin: &commit.Origin{
		Source: commit.SourceModel, Model: "m", Manifest: obj.ID, Usage: content.Usage{Input: 20_000},
	}})
	if c := s.counted(Options{}).Scale; c.Factor < 1.9 || c.Factor > 2 {
		t.Errorf("%+v, want about 2", c)
	}
}
