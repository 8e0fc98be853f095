package tract_test

import (
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// inOrder is a list of messages.
func inOrder(list ...tract.ImportedMessage) iter.Seq2[tract.ImportedMessage, error] {
	return func(yield func(tract.ImportedMessage, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// TestImportOfAnInvalidPart imports a part without a block, and one that is too long: the error
// names it, nothing of its message is imported, and earlier messages are kept.
func TestImportOfAnInvalidPart(t *testing.T) {
	long := strings.Repeat("x", content.MaxSize+1)
	for what, bad := range map[string]content.Block{"no block": nil, "limit": content.User(long), "kind": content.Text{Of: 99, Text: "words"}} {
		part := tract.ImportedPart{ID: "bad", Block: bad}
		first := tract.ImportedMessage{Branch: "b", Parts: []tract.ImportedPart{{ID: "1", Block: content.User("one")}}}
		for name, c := range map[string]struct {
			list []tract.ImportedMessage
			kept int
		}{
			"alone":       {[]tract.ImportedMessage{{Branch: "b", Parts: []tract.ImportedPart{part}}}, 0},
			"on a branch": {[]tract.ImportedMessage{first, {Branch: "b", Parts: []tract.ImportedPart{part}}}, 1},
			"on a fork":   {[]tract.ImportedMessage{first, {Branch: "fork", From: "1", Parts: []tract.ImportedPart{part}}}, 1},
		} {
			repo := memory(t)
			done, err := repo.Import(t.Context(), inOrder(c.list...), tract.ImportOptions{})
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, %s: %v", what, name, err)
			}
			if what == "no block" && !strings.Contains(err.Error(), `part "bad"`) {
				t.Errorf("%s: the part is not named: %v", name, err)
			}
			added := 0
			for _, b := range done {
				added += b.Added
			}
			all := branches(t, repo)
			if added != c.kept || len(all) != c.kept || len(all["b"]) != c.kept {
				t.Errorf("%s, %s: %+v, %d branches, %d commits", what, name, done, len(all), len(all["b"]))
			}
		}
	}
}

// TestImportOfAPartWithoutABlock: nothing of its message is stored, wherever it stands, and
// a plan finds it too.
func TestImportOfAPartWithoutABlock(t *testing.T) {
	for at := range 3 {
		f := tract.ImportedMessage{Branch: "b"}
		for i := range 3 {
			f.Parts = append(f.Parts, tract.ImportedPart{ID: strconv.Itoa(i), Block: content.User("words")})
		}
		f.Parts[at].Block = nil
		repo := memory(t)
		want := "part \"" + strconv.Itoa(at) + "\": no block"
		if done, err := repo.Import(t.Context(), inOrder(f), tract.ImportOptions{DryRun: true}); err == nil || !strings.Contains(err.Error(), want) || len(done) > 0 {
			t.Errorf("a plan gives %+v, %v", done, err)
		}
		done, err := repo.Import(t.Context(), inOrder(f), tract.ImportOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || len(done) > 0 || len(branches(t, repo)) > 0 {
			t.Errorf("%+v, %v, want %s", done, err, want)
		}
	}
}
