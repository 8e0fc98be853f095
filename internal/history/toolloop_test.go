package history

import (
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestLastTurnEndsAtTheUserAndAtAMerge: tools of an earlier turn, or from before a merge, are
// not of the last turn.
func TestLastTurnEndsAtTheUserAndAtAMerge(t *testing.T) {
	store := objects.Memory()
	add := func(parent *commit.Commit, d commit.Draft) *commit.Commit {
		made, put, err := commit.Write(parent, d)
		if err == nil {
			err = store.Apply(t.Context(), objects.Batch{Put: put})
		}
		if err != nil {
			t.Fatal(err)
		}
		return made[0]
	}
	user := add(nil, commit.Draft{Block: content.User("a")})
	call := add(user, commit.Draft{Block: content.ToolCall{CallID: "c", Name: "n", Arguments: "{}"}})
	said := add(call, commit.Draft{Block: content.Assistant("b")})
	other := add(user, commit.Draft{Block: content.Assistant("c")})
	merge := add(said, commit.Draft{Op: commit.Merge, SecondParent: other})
	for _, test := range []struct {
		tip   *commit.Commit
		count int
		tools bool
	}{
		{user, 0, false},
		{call, 1, true},
		{said, 2, true},
		{other, 1, false},
		{add(said, commit.Draft{Block: content.User("d")}), 0, false},
		{add(merge, commit.Draft{Block: content.Assistant("e")}), 1, false},
	} {
		n := 0
		for _, err := range LastTurn(t.Context(), store, test.tip.ID) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		tools, err := UsedTools(t.Context(), store, test.tip.ID)
		if n != test.count || tools != test.tools || err != nil {
			t.Errorf("the last turn at %s has %d commits, tools %v, %v; want %d, %v", test.tip.Kind, n, tools, err, test.count, test.tools)
		}
	}
}
