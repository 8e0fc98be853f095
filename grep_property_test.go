package tract_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// powerless is a store without what only some engines can do.
type powerless struct{ objects.Store }

func init() {
	objects.Register("powerless", func(ctx context.Context, rest string, o objects.Options) (objects.Store, error) {
		s, err := objects.Open(ctx, rest, o)
		return powerless{s}, err
	})
}

var patterns = []string{"text", "text 1", "words 2$", "TEXT", "(?i)TEXT 7", "3|words 1", "^call", `\d\d$`, "^", "needle", "(?i)n[e]edle|zzz", "e n+e", "nowhere"}

// grepped is what a search finds, in its order.
func grepped(t *testing.T, repo *tract.Repo, g tract.Grep) []string {
	t.Helper()
	var list []string
	for m, err := range repo.Grep(t.Context(), g) {
		if err != nil {
			t.Fatalf("grep %v: %v", g, err)
		}
		list = append(list, fmt.Sprintf("%s:%d:%s %v", m.Commit.ID, m.Line, m.Text, m.Spans))
	}
	return list
}

// read finds the same by reading everything.
func read(t *testing.T, repo *tract.Repo, g tract.Grep) []string {
	t.Helper()
	var list []string
	seen := map[objects.ID]bool{}
	for _, rev := range g.Revs {
		for c, err := range repo.Log(t.Context(), rev) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Block == nil || seen[c.ID] || len(g.Kinds) > 0 && !slices.Contains(g.Kinds, c.Kind) {
				continue
			}
			seen[c.ID] = true
			text := c.Block.String()
			if call, ok := c.Block.(content.ToolCall); ok {
				text = call.Name + "\n" + text
			}
			for i, line := range slices.Collect(strings.Lines(text)) {
				line = strings.TrimSuffix(line, "\n")
				spans := g.Pattern.FindAllStringIndex(line, -1)
				if spans == nil {
					continue
				}
				list = append(list, fmt.Sprintf("%s:%d:%s %v", c.ID, i+1, line, spans))
				if g.First {
					break
				}
			}
		}
	}
	return list
}

// TestGrepFindsWhatReadingFinds has one random history in memory, in a file and in a
// file packed closely, and every search find the same in all of them.
func TestGrepFindsWhatReadingFinds(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			file, packed := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "store")
			w := newWorld(t, 2000+seed, "mem:", file, packed)
			w.run(25)
			w.all("append", func(ctx context.Context, repo *tract.Repo) error {
				_, err := repo.Branch("main").Append(ctx, []content.Block{
					content.User(strings.Repeat("hay ", 1<<18) + "\nthe needle\n" + strings.Repeat("hay ", 99)),
					content.User(strings.Repeat("hay ", 3000) + "the Needle"), content.User("line\n\nneedle needle"),
				})
				if errors.As(err, new(*tract.OpenTurnError)) {
					return tract.ErrNoChange
				}
				return err
			})
			if _, err := w.repos[2].GC(t.Context(), objects.Sweep{}); err != nil {
				t.Fatal(err)
			}
			w.all("annotate", func(ctx context.Context, repo *tract.Repo) error { // which lies beside the packs
				_, err := repo.Branch("main").Annotate(ctx, "main", priority.Skip, "a needle in the text")
				return err
			})
			plain := must(tract.Open(t.Context(), "powerless:"+packed, tract.ReadOnly()))(t)
			defer func() { _ = plain.Close() }()
			for i, expression := range patterns {
				g := tract.Grep{Pattern: regexp.MustCompile(expression), First: i%3 == 0, Revs: w.branches}
				if i%4 == 1 {
					g.Revs = w.branches[:1]
				}
				if i%5 == 1 {
					g.Kinds = []content.Kind{content.KindUser, content.KindReasoning}
				}
				want := grepped(t, plain, g)
				for _, repo := range w.repos {
					if got := grepped(t, repo, g); !slices.Equal(got, want) {
						t.Fatalf("%q: %d matches, want %d:\n%s\n%s", expression, len(got), len(want), cut(got), cut(want))
					}
				}
				all := read(t, plain, g)
				slices.Sort(all)
				if slices.Sort(want); !slices.Equal(want, all) {
					t.Fatalf("%q: %d matches, and by reading %d:\n%s\n%s", expression, len(want), len(all), cut(want), cut(all))
				}
			}
		})
	}
}

func cut(list []string) string {
	text := strings.Join(list, "\n")
	return text[:min(len(text), 2000)]
}
