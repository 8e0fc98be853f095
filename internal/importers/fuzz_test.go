package importers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// FuzzRead: whatever a file holds, reading it ends, says each block once, and
// gives blocks that can be stored; a second reading is the same.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json*")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range Formats() {
			list, err := read(text, format)
			again, errAgain := read(text, format)
			if said(list) != said(again) || (err == nil) != (errAgain == nil) {
				t.Fatalf("%s: read twice:\n%s%v\n%s%v", format, said(list), err, said(again), errAgain)
			}
			known, ended := map[string]bool{}, map[string]bool{}
			for _, e := range list {
				if e.From != "" && format == ClaudeCode && !known[e.From] {
					t.Fatalf("a thread begins after %q, which did not come", e.From)
				}
				last := ""
				for _, p := range e.Parts {
					if p.ID == "" || p.ID != last && ended[p.ID] {
						t.Fatalf("the id %q comes again", p.ID)
					}
					last = p.ID
					known[p.ID], ended[p.ID] = true, true
					if _, err := content.Decode(content.Encode(p.Block)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}
