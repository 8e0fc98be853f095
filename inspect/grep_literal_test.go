package inspect

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryMatchHasTheLiteral(t *testing.T) {
	for expression, want := range map[string]string{
		"needle": "needle", ".*needle$": "needle", "(?i)Needle": "needle", "(?i)task": "ta", "(xab+)c{2,}": "xa",
		"x?": "", "[n]eedle[0-9]": "needle", "(?i)ſ": "", "": "", "(?i)straße": "tra",
		"fox|dog": "fox dog", "(fox|dog)s": "fox dog", "(fox|d?)s": "s", "fox|.*": "", "foxes|foxen": "foxe", "(a|lion)lamb": "lamb",
	} {
		if got := strings.Join(literalsOf(expression), " "); got != want {
			t.Errorf("%q has %q, want %q", expression, got, want)
		}
	}
	// Whatever matches is let through.
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.StringMatching(`(\(\?i\))?([aksKſ]|k\+|\.\*|\(s\|k\)|\(ak\|a\|sa\)|a\?){1,5}`).Draw(t, "expression")
		text := rapid.StringMatching(`[aAkKsSſK ]{0,12}`).Draw(t, "text")
		if re, err := regexp.Compile(expression); err == nil && re.MatchString(text) && !literalsOf(expression).mayMatch(text) {
			t.Fatalf("%q matches %q, and nothing of %+v is in it", expression, text, literalsOf(expression))
		}
	})
}
