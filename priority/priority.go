// Package priority decides whether a commit goes into the prompt, and by which
// rule. It knows nothing of commits, stores or models: it is given facts.
//
// For most uses: fill [Facts] for one commit and ask [Policy.Decide]. When the
// prompt has a budget, add up the turns and ask [Fit] how many of the oldest
// have to go.
package priority

import (
	"fmt"
	"strings"
)

// Level is how much a commit wants to be in the prompt.
type Level uint8

// The levels. Unset leaves the decision to the next rule.
const (
	Unset  Level = iota
	Skip         // stays in the history, is not sent
	Normal       // is sent, and may be dropped by a budget
	Pinned       // is sent, whatever the budget
)

var levelNames = [...]string{"default", "skip", "normal", "pinned"}

// String returns the name that people type: default, skip, normal or pinned.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// ParseLevel reads the name of a level; "default" is Unset.
func ParseLevel(name string) (Level, error) {
	for l, n := range levelNames {
		if n == name {
			return Level(l), nil
		}
	}
	return Unset, fmt.Errorf("priority %q: want skip, normal, pinned or default", name)
}

// MarshalText writes the name of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the name of a level.
func (l *Level) UnmarshalText(b []byte) (err error) {
	*l, err = ParseLevel(string(b))
	return err
}

// Strip names the past reasoning that never goes into the prompt outside an
// open tool loop (setting reasoning.strip_from_context).
type Strip uint8

// The values of Strip.
const (
	StripNone       Strip = iota
	StripAllButLast       // keeps the reasoning of the last turn that has any
	StripAll
)

var stripNames = [...]string{"none", "all-but-last", "all"}

// String returns the value of the setting.
func (s Strip) String() string {
	if int(s) < len(stripNames) {
		return stripNames[s]
	}
	return fmt.Sprintf("strip(%d)", uint8(s))
}

// ParseStrip reads the value of the setting.
func ParseStrip(name string) (Strip, error) {
	for s, n := range stripNames {
		if n == name {
			return Strip(s), nil
		}
	}
	return StripNone, fmt.Errorf("strip_from_context %q: want all, all-but-last or none", name)
}

// Policy is the settings that apply to every commit of a prompt.
type Policy struct {
	Strip            Strip // applied before IncludeReasoning
	IncludeReasoning bool  // send past reasoning that is skipped only by default
}

// Facts is what a policy needs to know of one commit.
type Facts struct {
	Default   Level  // of its kind
	Explicit  Level  // set by a person: the last annotation on the chain, else its own priority
	Reason    string // given with the annotation
	Reasoning bool
	OpenTurn  bool // belongs to an open tool loop (the last turn, if it has tool calls) that its target wants back whole
	ToolTurn  bool // belongs to a closed turn with tool calls, of which its target demands the reasoning in every request
	LastTurn  bool // belongs to the last turn that has reasoning
}

// Why names the rule that decided, for people: "default", "open turn",
// "annotated: REASON" or the name of a setting.
type Why string

// Annotated reports whether a person decided.
func (w Why) Annotated() bool { return strings.HasPrefix(string(w), whyAnnotated) }

const whyAnnotated = "annotated"

// Reasons that do not depend on the commit.
const (
	WhyDefault  Why = "default"
	WhyOpenTurn Why = "open turn"
	WhyToolTurn Why = "rule reasoning-content-missing"
	WhyIncluded Why = "reasoning.include_in_context"
	WhyStripped Why = "reasoning.strip_from_context"
)

// Decide returns the level of a commit, and the rule that decided it. The first
// rule that applies wins: the choice of a person, the open tool loop, a target that
// demands the reasoning of tool calls back, the settings for reasoning, the default
// of the kind. The level is never Unset for a commit whose kind has a default.
func (p Policy) Decide(f Facts) (Level, Why) {
	switch {
	case f.Explicit != Unset && f.Reason != "":
		return f.Explicit, Why(whyAnnotated + ": " + f.Reason)
	case f.Explicit != Unset:
		return f.Explicit, whyAnnotated
	case f.OpenTurn:
		return max(f.Default, Normal), WhyOpenTurn
	case f.ToolTurn && f.Reasoning:
		return max(f.Default, Normal), WhyToolTurn
	case f.Reasoning && p.strips(f):
		return Skip, WhyStripped
	case f.Reasoning && p.IncludeReasoning:
		return Normal, WhyIncluded
	}
	return f.Default, WhyDefault
}

func (p Policy) strips(f Facts) bool {
	return p.Strip == StripAll || p.Strip == StripAllButLast && !f.LastTurn
}

// Turn is what a budget needs to know of one turn.
type Turn struct {
	Tokens int  // of blocks that may be dropped
	Fixed  int  // of blocks that may not: pinned, system
	Keep   bool // the turn is not dropped: it is open, or the last
}

// OverBudgetError reports that the blocks that must be sent exceed the budget.
type OverBudgetError struct {
	Budget, Fixed int // tokens
}

// Error names both sums.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("budget of %d tokens: what is pinned, of the system or in the last turn needs %d", e.Budget, e.Fixed)
}

// Fit returns which turns have to be left out so that the rest is within budget
// tokens: whole turns, the oldest first. A budget of zero or less is none. What
// is Fixed stays even when its turn goes. The error is an *[OverBudgetError].
func Fit(budget int, turns []Turn) (drop []bool, err error) {
	drop = make([]bool, len(turns))
	if budget <= 0 {
		return drop, nil
	}
	sum := 0
	for _, t := range turns {
		sum += t.Tokens + t.Fixed
	}
	for i, t := range turns {
		if sum <= budget {
			return drop, nil
		}
		if !t.Keep {
			drop[i] = true
			sum -= t.Tokens
		}
	}
	if sum > budget {
		return nil, &OverBudgetError{Budget: budget, Fixed: sum}
	}
	return drop, nil
}
