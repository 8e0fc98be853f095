package refs

import (
	"errors"
	"testing"
)

func TestForkNames(t *testing.T) {
	names := map[string]bool{"a": true, "a/fork-2": true, "a/fork-4": true}
	taken := func(name string) (bool, error) { return names[name], nil }
	for _, of := range []string{"a", "a/fork-2", "a/fork-17"} {
		if name, err := FreeName(ForkedFrom(of), ForkSuffix, taken); name != "a/fork-3" || err != nil {
			t.Errorf("%s: %s, %v", of, name, err)
		}
	}
	if name, err := FreeName("b", "/", taken); name != "b" || err != nil {
		t.Errorf("%s, %v", name, err)
	}
	bad := errors.New("no answer")
	if _, err := FreeName("b", "/", func(string) (bool, error) { return false, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
}
