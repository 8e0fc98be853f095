package refs

import (
	"errors"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestHeadOfABranchWithoutCommits ends: HEAD names nothing there, and looking for
// it as a tool call asks for HEAD again.
func TestHeadOfABranchWithoutCommits(t *testing.T) {
	r := Resolver{Store: objects.Memory(), Head: "main"}
	for _, rev := range []string{"HEAD", "HEAD~1", "refs/heads/main", ":/words", "nobody"} {
		if _, err := r.Resolve(t.Context(), rev); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("%s: %v", rev, err)
		}
	}
}
