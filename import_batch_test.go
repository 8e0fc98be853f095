package tract_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// theStore is what the scheme "of-a-test" opens.
var theStore objects.Store

func init() {
	objects.Register("of-a-test", func(context.Context, string, objects.Options) (objects.Store, error) { return theStore, nil })
}

// repoOf is a repository in a store.
func repoOf(t *testing.T, store objects.Store) *tract.Repo {
	t.Helper()
	theStore = store
	repo, err := tract.Open(t.Context(), "of-a-test:", tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// one is a message with one part.
func one(branch, id, text string) tract.ImportedMessage {
	return tract.ImportedMessage{Branch: branch, Parts: []tract.ImportedPart{{ID: id, Block: content.User(text)}}}
}

// batchful is so long that a message that says it ends its batch.
var batchful = strings.Repeat("words of a long message. ", 200_000)

// underWay is enough messages for several batches.
const underWay = 10_000

// TestImportForksFromAnUnwrittenBatch imports branches that begin within another branch, at a commit
// of the present batch and of a batch that is written.
func TestImportForksFromAnUnwrittenBatch(t *testing.T) {
	fork := func(branch, from string) tract.ImportedMessage {
		f := one(branch, branch, "words of "+branch)
		f.From = from
		return f
	}
	list := []tract.ImportedMessage{
		one("b", "0", "begins"), fork("first", "0"), // from here on it is known where everything is
		one("b", "1", "of a batch that is written"), one("b", "2", batchful),
		one("b", "3", "of the batch that is being made"), one("b", "4", "and on"),
		fork("written", "1"), fork("made", "3"),
	}
	repo := memory(t)
	done, err := repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{})
	if err != nil || len(done) != 4 {
		t.Fatalf("%+v, %v", done, err)
	}
	all := branches(t, repo)
	for branch, at := range map[string]int{"first": 0, "written": 1, "made": 3} {
		have := all[branch]
		if len(have) != at+2 || have[at].ID != all["b"][at].ID || have[at].Block.String() != all["b"][at].Block.String() || have[at+1].Block.String() != "words of "+branch {
			t.Errorf("%s has %d commits, want those of b up to %d and one", branch, len(have), at)
		}
	}
	if len(all["b"]) != 5 {
		t.Errorf("b has %d commits", len(all["b"]))
	}
}

// TestImportEndsAtTheFirstFailedBatch checks that after a failed batch nothing more of a source is
// written, on whatever branch.
func TestImportEndsAtTheFirstFailedBatch(t *testing.T) {
	store := objects.Memory()
	list := []tract.ImportedMessage{one("b", "0", batchful), one("b", "1", "1"+batchful), one("c", "2", "2"+batchful), one("d", "3", "words")}
	repo := repoOf(t, objectstest.Faulty(store, objectstest.Plan{objectstest.Apply: {2: objectstest.Before}}))
	done, err := repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{})
	all := branches(t, repo)
	if !errors.Is(err, objectstest.ErrFault) || len(all) != 1 || len(all["b"]) != 1 {
		t.Errorf("%d branches, %d commits on b, %v", len(all), len(all["b"]), err)
	}
	for _, b := range done {
		if want := len(all[b.Branch]); b.Added != want || b.Tip.IsZero() != (want == 0) {
			t.Errorf("%+v is told, %d commits are there", b, want)
		}
	}
	done, err = repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{})
	if err != nil || len(done) != 3 || done[0].Added != 1 || done[1].Added != 1 || done[2].Added != 1 {
		t.Errorf("the next import: %+v, %v", done, err)
	}
}

// TestImportContinuesABranchAfterManyBatches goes on where it was.
func TestImportContinuesABranchAfterManyBatches(t *testing.T) {
	repo := memory(t)
	list := []tract.ImportedMessage{one("a", "a0", "a0")}
	if _, err := repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	list = append(list, one("a", "a1", "a1"))
	for i := range 8 {
		list = append(list, one("b", "b"+strconv.Itoa(i), strconv.Itoa(i)+batchful))
	}
	list = append(list, one("a", "a2", "a2"), one("a", "a3", "a3"))
	if _, err := repo.Import(t.Context(), inOrder(list...), tract.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	var words []string
	var parent *commit.Commit
	for _, c := range branches(t, repo)["a"] {
		words = append(words, fmt.Sprintf("%.9s", c.Block))
		if parent != nil && c.Depth != parent.Depth+1 {
			t.Errorf("commit %s has depth %d behind %d", c.ID.Short(), c.Depth, parent.Depth)
		}
		parent = c
	}
	if !slices.Equal(words, []string{"a0", "a1", "a2", "a3"}) {
		t.Errorf("a says %q", words)
	}
}

// TestEveryMessageHasItsOwnOrigin, however many there are.
func TestEveryMessageHasItsOwnOrigin(t *testing.T) {
	repo := memory(t)
	var list iter.Seq2[tract.ImportedMessage, error] = func(yield func(tract.ImportedMessage, error) bool) {
		for i := range underWay {
			f := one("b", strconv.Itoa(i), "words")
			f.Origin = commit.Origin{ResponseID: "r" + strconv.Itoa(i), Finish: "stop", Original: map[string]string{"uuid": strconv.Itoa(i)}}
			if !yield(f, nil) {
				return
			}
		}
	}
	if _, err := repo.Import(t.Context(), list, tract.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, c := range branches(t, repo)["b"] {
		if n := strconv.Itoa(i); c.Origin.ResponseID != "r"+n || c.Origin.Original["uuid"] != n {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d have the origin of another", wrong, underWay)
	}
}
