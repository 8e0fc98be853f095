package tract_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// chainCounter is a store that counts the commits that are read by walks.
type chainCounter struct {
	objects.Store
	commits int
}

func (s *chainCounter) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for o, err := range s.Store.Chain(ctx, tip, o) {
			if s.commits++; !yield(o, err) {
				return
			}
		}
	}
}

// TestImportReadsSharedCommitsOnce checks that the import of a log with forks that was imported
// before reads each commit about once, not once for each fork.
func TestImportReadsSharedCommitsOnce(t *testing.T) {
	const messages, forks = 4000, 20
	var log []tract.ImportedMessage
	for i := range messages {
		log = append(log, one("main", fmt.Sprint(i), "text"))
		if i%(messages/forks) == 0 {
			m := one(fmt.Sprint("fork-", i), fmt.Sprint("f", i), "text")
			m.From = fmt.Sprint(i)
			log = append(log, m)
		}
	}
	slices.SortStableFunc(log, func(a, b tract.ImportedMessage) int { return len(a.From) - len(b.From) }) // forks last
	memory, err := objects.Open(t.Context(), "mem:", objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	store := &chainCounter{Store: memory}
	repo := repoOf(t, store)
	must(repo.Import(t.Context(), inOrder(log...), tract.ImportOptions{}))(t)
	store.commits = 0
	for _, b := range must(repo.Import(t.Context(), inOrder(log...), tract.ImportOptions{}))(t) {
		if b.Added > 0 {
			t.Errorf("a second import added %+v", b)
		}
	}
	if most := 2 * messages; store.commits > most {
		t.Errorf("a second import read %d commits, want at most %d", store.commits, most)
	}
}

// randomLog returns a log with forks of forks, parts of several blocks and parts without content.
func randomLog(random *rand.Rand) []tract.ImportedMessage {
	var log []tract.ImportedMessage
	branches, parts := []string{"b0"}, map[string][]string{"b0": nil}
	for range 40 + random.IntN(60) {
		branch, from := branches[random.IntN(len(branches))], ""
		if len(parts[branch]) > 1 && random.IntN(8) == 0 {
			from = parts[branch][random.IntN(len(parts[branch]))]
			branch = fmt.Sprint("b", len(branches))
			branches = append(branches, branch)
		}
		m := tract.ImportedMessage{Branch: branch, From: from}
		for range 1 + random.IntN(3) {
			id := fmt.Sprint("p", len(log), "-", len(m.Parts)/2)
			text := fmt.Sprint("text of ", id, " ", len(m.Parts))
			if random.IntN(6) == 0 {
				text = ""
			}
			var b content.Block = content.Assistant(text)
			if random.IntN(4) == 0 {
				b = content.User(text)
			}
			m.Parts = append(m.Parts, tract.ImportedPart{ID: id, Block: b})
			parts[branch] = append(parts[branch], id)
		}
		log = append(log, m)
	}
	return log
}

// TestImportOfRandomLogsThatGrow checks that a log which is imported in random steps, between which
// commits are annotated and branches deleted, is in the end what one import brings.
func TestImportOfRandomLogsThatGrow(t *testing.T) {
	ctx := t.Context()
	texts := func(repo *tract.Repo) map[string]string {
		list := map[string]string{}
		for name, commits := range branches(t, repo) {
			for _, c := range commits {
				if c.Op == commit.Append {
					list[name] += fmt.Sprint(c.Key, " ", c.Index, " ", c.Block, "\n")
				}
			}
		}
		return list
	}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(random)
		whole, repo := memory(t), memory(t)
		must(whole.Import(ctx, inOrder(log...), tract.ImportOptions{}))(t)
		want := texts(whole)
		for n := 0; n < len(log); n = min(n+1+random.IntN(20), len(log)) {
			must(repo.Import(ctx, inOrder(log[:n]...), tract.ImportOptions{}))(t)
			names := slices.Sorted(maps.Keys(branches(t, repo)))
			if len(names) == 0 {
				continue
			}
			name := names[random.IntN(len(names))]
			switch random.IntN(3) {
			case 0:
				first := branches(t, repo)[name][0].ID.String()
				must(repo.Branch(name).Annotate(ctx, first, priority.Pinned, fmt.Sprint(n)))(t)
			case 1:
				if err := repo.DeleteRefs(ctx, []string{"refs/heads/" + name}); err != nil {
					t.Fatal(err)
				}
			}
		}
		must(repo.Import(ctx, inOrder(log...), tract.ImportOptions{}))(t)
		if have := texts(repo); !maps.Equal(have, want) {
			t.Fatalf("seed %d: the log in steps gives\n%v\nwant\n%v", seed, have, want)
		}
		for _, b := range must(repo.Import(ctx, inOrder(log...), tract.ImportOptions{}))(t) {
			if b.Added > 0 {
				t.Errorf("seed %d: another import added %+v", seed, b)
			}
		}
	}
}
