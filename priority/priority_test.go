package priority

import (
	"errors"
	"slices"
	"testing"
)

func TestDecide(t *testing.T) {
	thought := Facts{Default: Skip, Reasoning: true}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	pinned := with(thought, func(f *Facts) { f.Explicit, f.Reason = Pinned, "important step" })
	skipped := with(thought, func(f *Facts) { f.Explicit = Skip })
	open := with(thought, func(f *Facts) { f.OpenTurn = true })
	last := with(thought, func(f *Facts) { f.LastTurn = true })
	text, system := Facts{Default: Normal}, Facts{Default: Pinned}

	for _, c := range []struct {
		name   string
		facts  Facts
		policy Policy
		level  Level
		why    Why
	}{
		{"text is sent", text, Policy{}, Normal, WhyDefault},
		{"system is pinned", system, Policy{}, Pinned, WhyDefault},
		{"reasoning is skipped by default", thought, Policy{}, Skip, WhyDefault},
		{"the flag includes reasoning", thought, Policy{IncludeReasoning: true}, Normal, WhyIncluded},
		{"the flag does not touch text", text, Policy{IncludeReasoning: true, Strip: StripAll}, Normal, WhyDefault},
		{"explicit skip beats the flag", skipped, Policy{IncludeReasoning: true}, Skip, "annotated"},
		{"explicit skip beats the open turn", with(skipped, func(f *Facts) { f.OpenTurn = true }), Policy{}, Skip, "annotated"},
		{"explicit pin needs no flag", pinned, Policy{}, Pinned, "annotated: important step"},
		{"explicit pin beats strip", pinned, Policy{Strip: StripAll}, Pinned, "annotated: important step"},
		{"an open turn is whole", open, Policy{Strip: StripAll}, Normal, WhyOpenTurn},
		{"an open turn lowers nothing", with(system, func(f *Facts) { f.OpenTurn = true }), Policy{}, Pinned, WhyOpenTurn},
		{"a tool turn has its reasoning", with(thought, func(f *Facts) { f.ToolTurn = true }), Policy{Strip: StripAll}, Normal, WhyToolTurn},
		{"and the rest as always", with(text, func(f *Facts) { f.ToolTurn = true }), Policy{}, Normal, WhyDefault},
		{"explicit skip beats the tool turn", with(skipped, func(f *Facts) { f.ToolTurn = true }), Policy{}, Skip, "annotated"},
		{"strip all beats include", thought, Policy{Strip: StripAll, IncludeReasoning: true}, Skip, WhyStripped},
		{"all but last strips an earlier one", thought, Policy{Strip: StripAllButLast, IncludeReasoning: true}, Skip, WhyStripped},
		{"all but last keeps the last", last, Policy{Strip: StripAllButLast, IncludeReasoning: true}, Normal, WhyIncluded},
		{"all but last includes nothing by itself", last, Policy{Strip: StripAllButLast}, Skip, WhyDefault},
	} {
		if level, why := c.policy.Decide(c.facts); level != c.level || why != c.why {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, level, why, c.level, c.why)
		}
	}
}

func TestFitDropsWholeTurnsFromTheOldest(t *testing.T) {
	turns := []Turn{{Tokens: 10, Fixed: 5}, {Tokens: 10, Keep: true}, {Tokens: 10}, {Tokens: 10, Keep: true}}
	for _, c := range []struct {
		budget int
		drop   []bool
	}{
		{0, []bool{false, false, false, false}},
		{45, []bool{false, false, false, false}},
		{44, []bool{true, false, false, false}},
		{35, []bool{true, false, false, false}},
		{34, []bool{true, false, true, false}},
		{25, []bool{true, false, true, false}},
	} {
		drop, err := Fit(c.budget, turns)
		if err != nil || !slices.Equal(drop, c.drop) {
			t.Errorf("budget %d: drop %v, %v; want %v", c.budget, drop, err, c.drop)
		}
	}
	_, err := Fit(24, turns)
	if over := (*OverBudgetError)(nil); !errors.As(err, &over) || over.Fixed != 25 {
		t.Errorf("budget 24: %v, want an OverBudgetError naming 25", err)
	}
}

func TestNames(t *testing.T) {
	for l := Unset; l <= Pinned; l++ {
		if got, err := ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("ParseLevel(%q) = %v, %v", l, got, err)
		}
	}
	for s := StripNone; s <= StripAll; s++ {
		if got, err := ParseStrip(s.String()); got != s || err != nil {
			t.Errorf("ParseStrip(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseLevel("PINNED!"); err == nil {
		t.Error("ParseLevel took nonsense")
	}
}
