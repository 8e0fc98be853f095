package tract_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// world is a random history that is told to several stores alike.
type world struct {
	t        *testing.T
	r        *rand.Rand
	repos    []*tract.Repo
	branches []string
	calls    int
	now      time.Time
	seen     map[objects.ID]string // the prompt of every tip there was
	did      map[string]int        // how often an operation worked
}

func newWorld(t *testing.T, seed uint64, urls ...string) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), branches: []string{"main"}, now: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC), seen: map[objects.ID]string{}, did: map[string]int{},
	}
	for _, url := range urls {
		repo, err := tract.Open(t.Context(), url, tract.OpenOptions{Create: true, Now: func() time.Time { return w.now }, Author: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = repo.Close() })
		w.repos = append(w.repos, repo)
	}
	w.all("append", func(ctx context.Context, repo *tract.Repo) error {
		_, err := repo.Branch("main").Append(ctx, []content.Block{content.System("Be brief.")}, tract.AppendOptions{})
		return err
	})
	return w
}

// all does the same to every store; what is refused must be refused alike.
func (w *world) all(name string, do func(context.Context, *tract.Repo) error) {
	w.t.Helper()
	said := ""
	for i, repo := range w.repos {
		err := do(w.t.Context(), repo)
		text := fmt.Sprint(err)
		if i > 0 && text != said {
			w.t.Fatalf("%s: one store says %q, another %q", name, said, text)
		}
		if said = text; err != nil && !expected(err) {
			w.t.Fatalf("%s: %v", name, err)
		}
	}
	if said == "<nil>" {
		w.did[name]++
	}
}

func expected(err error) bool {
	return errors.Is(err, objects.ErrNotFound) || errors.Is(err, tract.ErrNoChange) || errors.Is(err, tract.ErrNotFastForward) || errors.Is(err, tract.ErrEmpty) || errors.Is(err, objects.ErrPurged) ||
		errors.As(err, new(*tract.ToolLoopError)) || errors.As(err, new(*tract.MergeConflictError)) || errors.As(err, new(*compile.RangeError))
}

func pick[T any](w *world, list []T) T { return list[w.r.IntN(len(list))] }

// block is a commit of a branch; of two, what a merge brought is among them.
func (w *world) block(branch string) string {
	w.t.Helper()
	var ids []string
	for c, err := range w.repos[0].Log(w.t.Context(), branch, tract.LogOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, c.ID.String())
	}
	return pick(w, ids)
}

func (w *world) blocks() []content.Block {
	w.calls++
	id := fmt.Sprintf("call_%d", w.r.IntN(w.calls)+1) // an id may come twice, as from small models
	text := fmt.Sprintf("text %d", w.calls)
	switch w.r.IntN(6) {
	case 0, 1:
		return []content.Block{content.User(text)}
	case 2:
		return []content.Block{content.Reasoning{Text: text}, content.Assistant(text)}
	case 3:
		return []content.Block{content.Reasoning{Text: text}, call(id)}
	case 4:
		return []content.Block{content.Reasoning{Text: text}, call(id), result(id), content.Assistant(text)}
	}
	return []content.Block{content.Text{Of: content.KindSystem, Name: pick(w, []string{"", "style"}), Text: text}}
}

// step does one random thing.
func (w *world) step() {
	on, other := pick(w, w.branches), pick(w, w.branches)
	at, from := w.block(on), w.block(other)
	text := fmt.Sprintf("words %d", w.r.IntN(4))
	blocks, level := w.blocks(), pick(w, []priority.Level{priority.Skip, priority.Normal, priority.Pinned, priority.Unset})
	switch n := w.r.IntN(20); {
	case n < 5:
		w.all("append", func(ctx context.Context, repo *tract.Repo) error {
			pending, err := repo.Branch(on).Pending(ctx)
			if err != nil {
				return err
			}
			for _, c := range pending {
				blocks = []content.Block{result(c.CallID)}
			}
			_, err = repo.Branch(on).Append(ctx, blocks, tract.AppendOptions{})
			return err
		})
	case n < 7:
		w.all("edit", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).Edit(ctx, at, text, tract.EditOptions{})
			if err != nil && !expected(err) {
				return tract.ErrNoChange // a block without words
			}
			return err
		})
	case n < 9:
		w.all("annotate", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).Annotate(ctx, at, level, text)
			return err
		})
	case n < 11 && len(w.branches) < 6:
		name := fmt.Sprintf("b%d", len(w.branches))
		w.branches = append(w.branches, name)
		w.all("fork", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).Fork(ctx, name, at)
			return err
		})
	default:
		w.join(n, on, other, at, from, text, level)
	}
}

// join does one random thing that brings something from elsewhere, or takes it back.
func (w *world) join(n int, on, other, at, from, text string, level priority.Level) {
	side, kind := w.r.IntN(4), w.r.IntN(8)
	switch {
	case n < 15:
		m := tract.MergeOptions{Squash: kind == 0, NoFastForward: kind == 1, FastForwardOnly: kind == 2, NoMove: kind == 3}
		if kind == 4 {
			m.Summary = text
		}
		m.Resolve = [](func(tract.Conflict) (*tract.Change, error)){
			nil,
			func(c tract.Conflict) (*tract.Change, error) { return &c.Ours, nil },
			func(c tract.Conflict) (*tract.Change, error) { return &c.Theirs, nil },
			func(tract.Conflict) (*tract.Change, error) { return &tract.Change{Text: text, Priority: level}, nil },
		}[side]
		w.all("merge", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).Merge(ctx, other, m)
			return err
		})
	case n < 17:
		w.all("cherry-pick", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).CherryPick(ctx, []string{from})
			return err
		})
	case n < 18 && kind < 4:
		w.all("compress", func(ctx context.Context, repo *tract.Repo) error {
			_, err := summaryID(repo.Branch(on).Compress(ctx, at+".."+on, tract.CompressOptions{Text: text}))
			return err
		})
	case n < 18:
		w.all("revert", func(ctx context.Context, repo *tract.Repo) error {
			_, err := repo.Branch(on).Revert(ctx, at, text)
			return err
		})
	case n < 19:
		source := pick(w, []string{"", on + "~1"})
		w.all("edit to what was", func(ctx context.Context, repo *tract.Repo) error {
			first := source
			if c, err := repo.Show(ctx, at); err == nil && source == "" {
				if first = c.ID.String(); c.Op == commit.Edit {
					first = c.Target.String()
				}
			}
			_, err := repo.Branch(on).Edit(ctx, at, "", tract.EditOptions{Source: first})
			return err
		})
	default:
		w.all("reset", func(ctx context.Context, repo *tract.Repo) error { return repo.Branch(on).Reset(ctx, at) })
	}
}

func refsOf(t *testing.T, repo *tract.Repo) string {
	t.Helper()
	list, err := repo.Store().Refs(t.Context(), objects.RefQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, ref := range list {
		text += ref.Name + " " + ref.Target.String() + "\n"
	}
	return text
}

// undoes takes the last command back, if one moved a ref, and does it again.
func (w *world) undoes(before []string) {
	w.t.Helper()
	for i, repo := range w.repos {
		after := refsOf(w.t, repo)
		if after == before[i] {
			continue
		}
		if _, err := repo.Undo(w.t.Context(), tract.UndoOptions{}); err != nil {
			w.t.Fatalf("undo: %v", err)
		}
		if got := refsOf(w.t, repo); got != before[i] {
			w.t.Fatalf("undo gives\n%swant\n%s", got, before[i])
		}
		if _, err := repo.Redo(w.t.Context(), tract.UndoOptions{}); err != nil {
			w.t.Fatalf("redo: %v", err)
		}
		if got := refsOf(w.t, repo); got != after {
			w.t.Fatalf("redo gives\n%swant\n%s", got, after)
		}
	}
}

func (w *world) run(steps int) {
	w.t.Helper()
	for range steps {
		before := make([]string, len(w.repos))
		for i, repo := range w.repos {
			before[i] = refsOf(w.t, repo)
		}
		w.now = w.now.Add(time.Second)
		w.step()
		w.look()
		w.undoes(before)
	}
	for head, text := range w.seen {
		p := must(w.repos[0].Compile(w.t.Context(), head.String(), tract.CompileOptions{IncludeReasoning: true}))(w.t)
		if got := fmt.Sprint(p.Messages, commitsOf(p), p.Tokens, p.Pending, p.SentFlags()); got != text {
			w.t.Fatalf("the prompt of %s has changed:\n%s\n%s", head.Short(), text, got)
		}
	}
}

// TestRandomHistories tells random histories of appends, edits,
// annotations, forks, merges, picks, reverts and resets: see world.look and
// world.undoes for what holds after each step.
func TestRandomHistories(t *testing.T) {
	did := map[string]int{}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("memory ", seed), func(t *testing.T) {
			w := newWorld(t, seed, "mem:")
			w.run(60)
			for name, n := range w.did {
				did[name] += n
			}
		})
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("both ", seed), func(t *testing.T) { newWorld(t, 1000+seed, "mem:", filepath.Join(t.TempDir(), "store")).run(40) })
	}
	for _, name := range []string{"merge", "cherry-pick", "revert", "edit to what was", "reset", "fork", "compress"} {
		if did[name] < 20 {
			t.Errorf("%s worked only %d times: the histories show little", name, did[name])
		}
	}
}

// commitsOf lists the commits of the blocks of each message.
func commitsOf(p *compile.Prompt) (list [][]objects.ID) {
	for _, commits := range p.MessageCommits() {
		list = append(list, slices.Clone(commits))
	}
	return list
}
