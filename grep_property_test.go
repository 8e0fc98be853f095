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
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/maintain"
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
func grepped(t *testing.T, repo *tract.Repo, pattern *regexp.Regexp, o inspect.GrepOptions) []string {
	t.Helper()
	var list []string
	for m, err := range inspect.Grep(t.Context(), repo, pattern, o) {
		if err != nil {
			t.Fatalf("grep %v: %v", pattern, err)
		}
		list = append(list, fmt.Sprintf("%s:%d:%s %v", m.Commit.ID, m.Line, m.Text, m.Spans))
	}
	return list
}

// read finds the same by reading everything.
func read(t *testing.T, repo *tract.Repo, pattern *regexp.Regexp, o inspect.GrepOptions) []string {
	t.Helper()
	var list []string
	seen := map[objects.ID]bool{}
	for _, rev := range o.Revs {
		for c, err := range repo.Log(t.Context(), rev, tract.LogOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Block == nil || seen[c.ID] || len(o.Kinds) > 0 && !slices.Contains(o.Kinds, c.Kind) {
				continue
			}
			seen[c.ID] = true
			text := c.Block.String()
			if call, ok := c.Block.(content.ToolCall); ok {
				text = call.Name + "\n" + text
			}
			for i, line := range slices.Collect(strings.Lines(text)) {
				line = strings.TrimSuffix(line, "\n")
				spans := pattern.FindAllStringIndex(line, -1)
				if spans == nil {
					continue
				}
				list = append(list, fmt.Sprintf("%s:%d:%s %v", c.ID, i+1, line, spans))
				if o.First {
					break
				}
			}
		}
	}
	return list
}

// TestGrepAgreesWithReadingEverything has one random history in memory, in a file and in a
// file packed closely, and every search find the same in all of them.
func TestGrepAgreesWithReadingEverything(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			file, packed := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "store")
			w := newWorld(t, 2000+seed, "mem:", file, packed)
			w.run(25)
			w.all("append", func(ctx context.Context, repo *tract.Repo) error {
				_, err := repo.Branch("main").Append(ctx, []content.Block{
					content.User(strings.Repeat("hay ", 1<<18) + "\nthe needle\n" + strings.Repeat("hay ", 99)),
					content.User(strings.Repeat("hay ", 3000) + "the Needle"), content.User("line\n\nneedle needle"),
				}, tract.AppendOptions{})
				if errors.As(err, new(*tract.ToolLoopError)) {
					return tract.ErrNoChange
				}
				return err
			})
			if _, err := maintain.GC(t.Context(), w.repos[2], objects.Sweep{}); err != nil {
				t.Fatal(err)
			}
			w.all("annotate", func(ctx context.Context, repo *tract.Repo) error { // which lies beside the packs
				_, err := repo.Branch("main").Annotate(ctx, "main", priority.Skip, "a needle in the text")
				return err
			})
			plain := must(tract.Open(t.Context(), "powerless:"+packed, tract.OpenOptions{ReadOnly: true}))(t)
			defer func() { _ = plain.Close() }()
			for i, expression := range patterns {
				pattern := regexp.MustCompile(expression)
				o := inspect.GrepOptions{First: i%3 == 0, Revs: w.branches}
				if i%4 == 1 {
					o.Revs = w.branches[:1]
				}
				if i%5 == 1 {
					o.Kinds = []content.Kind{content.KindUser, content.KindReasoning}
				}
				want := grepped(t, plain, pattern, o)
				for _, repo := range w.repos {
					if got := grepped(t, repo, pattern, o); !slices.Equal(got, want) {
						t.Fatalf("%q: %d matches, want %d:\n%s\n%s", expression, len(got), len(want), cut(got), cut(want))
					}
				}
				all := read(t, plain, pattern, o)
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
