package main

import "testing"

func TestLogNumbersStartAtRevision(t *testing.T) {
	for rev, want := range map[string]int{
		"HEAD": 0, "": 0, "main": 0, "HEAD~3": 3, "HEAD~": 1, "main^": 1, "main~2^~": 4, "a..HEAD~2": 2, "HEAD~5..": 0, "..main^^": 2,
		"call_1^{message}": 0, "call_1^{message}~2": 2, "main@{1}~": 1, ":/what~2": 0, "3fa2c1d": 0, "main^2": 0, "~4": 4,
	} {
		if got := newRevCounter(rev).n; got != want {
			t.Errorf("the log of %q begins with ~%d, want ~%d", rev, got, want)
		}
	}
}
