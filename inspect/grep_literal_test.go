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
		var got []string
		for _, l := range literalsOf(expression) {
			got = append(got, string(l.text))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q has %q, want %q", expression, got, want)
		}
	}
	// Whatever matches is let through.
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.StringMatching(`(\(\?i\))?([aksKſ]|k\+|\.\*|\(s\|k\)|\(ak\|a\|sa\)|a\?){1,5}`).Draw(t, "expression")
		text := rapid.StringMatching(`[aAkKsSſK ]{0,12}`).Draw(t, "text")
		if re, err := regexp.Compile(expression); err == nil && re.MatchString(text) && !literalsOf(expression).in([]byte(text)) {
			t.Fatalf("%q matches %q, and nothing of %+v is in it", expression, text, literalsOf(expression))
		}
	})
}

func TestALiteralIsFoundWhereItStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab]{1,4}`).Draw(t, "text")
		data := strings.Repeat(rapid.StringMatching(`[abAB]{0,9}`).Draw(t, "data"), rapid.IntRange(1, 40).Draw(t, "times"))
		data += rapid.StringMatching(`[abAB]{0,9}`).Draw(t, "end")
		if got, want := newLiteral(text, false).in([]byte(data)), strings.Contains(data, text); got != want {
			t.Fatalf("%q in %q: %v", text, data, got)
		}
		if got, want := newLiteral(text, true).in([]byte(data)), strings.Contains(strings.ToLower(data), text); got != want {
			t.Fatalf("%q in %q, whatever the case: %v", text, data, got)
		}
	})
}
