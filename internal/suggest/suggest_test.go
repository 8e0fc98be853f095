package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearestName(t *testing.T) {
	for _, c := range []struct {
		given string
		wrong int
		names []string
		want  string
	}{
		{"mian", 2, []string{"topic", "main", "plan"}, "main"},
		{"main", 2, []string{"mean", "main"}, "main"},
		{"man", 1, []string{"main", "mean"}, "main"}, // the first of equals
		{"man", 1, []string{"mean", "main"}, "mean"},
		{"mian", 1, []string{"main"}, ""}, // two bytes are wrong
		{"x", 3, []string{"much-longer"}, ""},
		{"much-longer", 3, []string{"x"}, ""},
		{"", 2, []string{"ab"}, "ab"},
		{"ab", 0, []string{"ab"}, "ab"},
		{"ab", 2, nil, ""},
	} {
		s := NewSearch(c.given, c.wrong)
		for _, name := range c.names {
			s.Add(name, name)
		}
		if s.Best() != c.want {
			t.Errorf("%q with %d wrong, of %q: %q, want %q", c.given, c.wrong, c.names, s.Best(), c.want)
		}
	}
}

func TestNearestNameOfSpellings(t *testing.T) {
	s := NewSearch("efort", 2)
	s.Add("reasoning.effort", "reasoning.effort")
	s.Add("effort", "reasoning.effort")
	if s.Best() != "reasoning.effort" {
		t.Errorf("efort is taken for %q", s.Best())
	}
}

// TestDistanceIsTheFewestEdits: as the definition has it, one byte at a time from the
// front.
func TestDistanceIsTheFewestEdits(t *testing.T) {
	var fewest func(a, b string) int
	fewest = func(a, b string) int {
		switch {
		case a == "" || b == "":
			return len(a) + len(b)
		case a[0] == b[0]:
			return fewest(a[1:], b[1:])
		}
		return 1 + min(fewest(a[1:], b[1:]), fewest(a[1:], b), fewest(a, b[1:]))
	}
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := distance(a, b), fewest(a, b); got != want {
			t.Errorf("from %q to %q: %d, want %d", a, b, got, want)
		}
	})
}
