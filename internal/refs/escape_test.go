package refs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/internal/refs"
)

func TestEscape(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main", "feature/x-1": "feature/x-1", "v1.2": "v1.2", "über": "über", "a@b": "a@b",
		"thread 1": "thread%201", "user@host:7": "user%40host%3A7", "a..b": "a%2E%2Eb", "100%": "100%25", "": "%", "%": "%25",
		"HEAD": "%48EAD", "@": "%40", "-x": "%2Dx", "/a//b/": "%2Fa/%2Fb%2F", "a.lock": "a%2Elock", "a/-b": "a/%2Db", "\xff": "%FF",
	} {
		if have := refs.Escape(name); have != want {
			t.Errorf("%q: %s, want %s", name, have, want)
		}
	}
	for _, name := range []string{"a%", "a%4", "a%zz", "a%20b%2", "a%61 b", "%48ead", "a%2fb", "thread 1", ""} {
		if have, err := refs.Unescape(name); err == nil {
			t.Errorf("%q stands for %q", name, have)
		}
	}
}

// TestEscapeIsReversible also shows that different strings have different names.
func TestEscapeIsReversible(t *testing.T) {
	any := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c@%./:{ -]{0,8}(\.lock|HEAD|%[0-9A-F]{2})?`), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(r *rapid.T) {
		name := any.Draw(r, "name")
		escaped := refs.Escape(name)
		if err := refs.Check(escaped); err != nil && len(escaped) < 200 {
			r.Fatalf("%q: %v", name, err)
		}
		if back, err := refs.Unescape(escaped); err != nil || back != name {
			r.Fatalf("%q is %q is %q, %v", name, escaped, back, err)
		}
	})
}

func TestABadNameHasAHint(t *testing.T) {
	for name, want := range map[string]string{"thread 1": "thread%201", "": "", strings.Repeat("long", 100): ""} {
		var bad *refs.NameError
		if err := fmt.Errorf("branch %w", refs.Check(name)); !errors.As(err, &bad) || !strings.Contains(bad.Hint(), want) || (want == "") != (bad.Hint() == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
