package main

import "testing"

// TestRoffEscapesCommands feeds words that would speak to the formatter.
func TestRoffEscapesCommands(t *testing.T) {
	for text, want := range map[string]string{
		".TH is no title":    `\&.TH is no title`,
		"so:\n'quoted' word": "so:\n\\&'quoted' word",
		`C:\tract --dir`:     `C:\etract \-\-dir`,
		"...\n.\n":           "\\&...\n\\&.\n",
		"a dot. 'n' a quote": "a dot. 'n' a quote",
	} {
		if got := escapeRoff(text); got != want {
			t.Errorf("escapeRoff(%q) = %q, want %q", text, got, want)
		}
	}
}
