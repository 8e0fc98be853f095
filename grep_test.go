package tract

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryMatchHasTheLiteral(t *testing.T) {
	for expression, want := range map[string]string{
		"needle": "needle", ".*needle$": "needle", "(?i)Needle": "needle", "(?i)task": "ta", "a|b": "", "(xab+)c{2,}": "xa",
		"x?": "", "[n]eedle[0-9]": "needle", "(?i)ſ": "", "": "", "(?i)straße": "tra",
	} {
		if got := string(literalOf(expression).text); got != want {
			t.Errorf("%q has %q, want %q", expression, got, want)
		}
	}
	// Whatever matches is let through.
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.StringMatching(`(\(\?i\))?([aksKſ]|k\+|\.\*|\(s\|k\)|a\?){1,5}`).Draw(t, "expression")
		text := rapid.StringMatching(`[aAkKsSſK ]{0,12}`).Draw(t, "text")
		if re, err := regexp.Compile(expression); err == nil && re.MatchString(text) && !literalOf(expression).in([]byte(text)) {
			t.Fatalf("%q matches %q, and %q is not in it", expression, text, literalOf(expression).text)
		}
	})
}
