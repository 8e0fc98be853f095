package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// answer adds a reply of a model with what it cost.
func (s *story) answer(name, model, text string, u content.Usage) {
	s.add(name, commit.Draft{Block: content.Assistant(text), Origin: &commit.Origin{Source: commit.SourceModel, Model: model, ResponseID: name, Usage: u}})
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

// TestThePromptOfAReplyCountsWhatItCost: what is sent beside the history is told
// apart from it, and a new text is counted as texts before it were.
func TestThePromptOfAReplyCountsWhatItCost(t *testing.T) {
	s := newStory(t)
	s.say("q1", 4000)
	if p := s.counted(Options{}); p.Calibration.Replies != 0 || p.Calibration.Factor != 1 || p.Tokens.Effective < 1000 {
		t.Errorf("without a reply: %+v, %+v", p.Calibration, p.Tokens)
	}
	s.answer("a1", "m", "yes", content.Usage{Input: 1700, Output: 10}) // 500 of tools
	s.say("q2", 40000)
	s.answer("a2", "m", "no", content.Usage{Input: 13710, Output: 10}) // 1.2 tokens where 1 was estimated
	s.say("q3", 4000)
	p := s.counted(Options{})
	if c := p.Calibration; c.Model != "m" || c.Replies != 2 || c.Factor < 1.18 || c.Factor > 1.21 || c.Overhead < 450 || c.Overhead > 600 {
		t.Errorf("calibration %+v", c)
	}
	if got := p.Tokens.Effective; got < 14900 || got > 14950 {
		t.Errorf("%d tokens, want 13,720 and about 1,200", got)
	}
	if p.Tokens.Raw != p.Tokens.Effective {
		t.Errorf("%+v", p.Tokens)
	}
}

// TestOnlyTheModelThatAnsweredLastCounts: another has other tokens.
func TestOnlyTheModelThatAnsweredLastCounts(t *testing.T) {
	s := newStory(t)
	s.say("q1", 400)
	s.answer("a1", "other", "yes", content.Usage{Input: 9999, Output: 10})
	s.say("q2", 400)
	s.answer("a2", "m", "no", content.Usage{Input: 300, Output: 1})
	s.answer("a3", "m", "silent", content.Usage{})
	if c := s.counted(Options{}).Calibration; c.Model != "m" || c.Replies != 1 || c.Overhead > 300 {
		t.Errorf("calibration %+v", c)
	}
}

// TestAServerThatCountsNonsenseIsHeldWithinReason keeps factors sane.
func TestAServerThatCountsNonsenseIsHeldWithinReason(t *testing.T) {
	s := newStory(t)
	for i, input := range []int64{1, 1 << 40, 3, 1 << 50} {
		s.say("q"+string(rune('0'+i)), 400)
		s.answer("a"+string(rune('0'+i)), "m", "yes", content.Usage{Input: input, Output: 1 << 50, Reasoning: 1 << 51})
	}
	if c := s.counted(Options{}).Calibration; c.Factor < leastOf || c.Factor > mostOf || c.Overhead < 0 {
		t.Errorf("calibration %+v", c)
	}
}

// TestABudgetKnowsWhatIsSentBesideTheHistory: what tools take is not there for
// turns.
func TestABudgetKnowsWhatIsSentBesideTheHistory(t *testing.T) {
	s := newStory(t)
	s.say("q1", 4000)
	s.answer("a1", "m", "yes", content.Usage{Input: 3000, Output: 10})
	s.say("q2", 400)
	p := s.counted(Options{Budget: 2500})
	if p.Entries[0].Sent || p.Entries[0].Why() != "budget" || p.Tokens.Effective > 2500 {
		t.Errorf("the first turn is sent: %+v", p.Tokens)
	}
	if _, err := Chain(t.Context(), s.store, s.tip.ID, Options{Budget: 1500}); !errors.As(err, new(*priority.OverBudgetError)) {
		t.Errorf("a budget below what is sent beside: %v", err)
	}
}

// TestLastRepliesAreFoundByLinks holds the way along links to a look at every entry.
func TestLastRepliesAreFoundByLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origins := []*objects.ID{nil, {1}, {1}, {2}, {3}}
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
			return Entry{
				Op: commit.Op(rapid.IntRange(int(commit.Append), int(commit.Edit)).Draw(t, "op")), origin: rapid.SampledFrom(origins).Draw(t, "origin"),
				Role: rapid.SampledFrom([]content.Role{content.RoleUser, content.RoleAssistant, content.RoleTool, content.NoRole}).Draw(t, "role"),
			}
		}), 0, 60).Draw(t, "entries")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 && len(entries) > 0 {
			entries = slices.Repeat(entries, maxScan/len(entries)+2)
		}
		var last lastReply
		for i := range entries {
			last.pass(&entries[i])
		}
		var want []reply
		var ids []objects.ID
		for i := len(entries) - 1; i >= max(0, len(entries)-maxScan) && len(ids) < maxOrigins; i-- {
			e := &entries[i]
			if !e.ofReply() {
				continue
			}
			if n := len(want); n > 0 && ids[n-1] == *e.origin {
				want[n-1].first = i
				continue
			}
			ids, want = append(ids, *e.origin), append(want, reply{first: i, end: i + 1})
		}
		found, got := lastReplies(entries)
		if !slices.Equal(got, ids) || !slices.Equal(found, want) {
			t.Fatalf("%+v, want %+v", found, want)
		}
	})
}
