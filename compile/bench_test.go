package compile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt"
)

// The histories that are measured: a system block, then a question, a thought and
// an answer to a turn, about 600 bytes each. They are made once and kept in the
// directory that TRACT_BENCH names, with the same words in a flat file.
type history struct {
	path, flat string
	size       int
}

func words(n int) string {
	text := fmt.Sprintf("history, message %d. ", n)
	for len(text) < 600 {
		text += fmt.Sprintf("Then step %d of %d went as the plan says. ", len(text), n)
	}
	return text
}

func grown(b testing.TB, size int) history {
	b.Helper()
	dir := os.Getenv("TRACT_BENCH")
	if dir == "" {
		dir = b.TempDir()
	}
	h := history{filepath.Join(dir, fmt.Sprint("h", size)), filepath.Join(dir, fmt.Sprint("flat", size)), size}
	if _, err := os.Stat(h.flat); err == nil {
		return h
	}
	s := h.open(b, objects.Options{Create: true})
	var flat strings.Builder
	var tip *commit.Commit
	for n := 0; n < size; {
		var drafts []commit.Draft
		for range min(size-n, 999) {
			text := words(n)
			block := []content.Block{content.User(text), content.Reasoning{Text: text, Format: content.FormatParsed}, content.Assistant(text)}[n%3]
			if n == 0 {
				block = content.System("You are brief.")
			}
			fmt.Fprintf(&flat, "{\"kind\":%q,\"text\":%q}\n", block.Kind(), text)
			drafts = append(drafts, commit.Draft{Block: block, Time: time.UnixMilli(1784000000000 + int64(n)), Author: "ada"})
			n++
		}
		tip = h.add(b, s, tip, drafts...)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(h.flat, []byte(flat.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return h
}

func (h history) open(b testing.TB, o objects.Options) objects.Store {
	b.Helper()
	if o.Create {
		if err := os.Mkdir(h.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			b.Fatal(err)
		}
	}
	s, err := objects.Open(b.Context(), h.path, o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (h history) add(b testing.TB, s objects.Store, tip *commit.Commit, drafts ...commit.Draft) *commit.Commit {
	b.Helper()
	commits, put, err := commit.Write(tip, drafts...)
	if err != nil {
		b.Fatal(err)
	}
	last := commits[len(commits)-1]
	move := objects.RefUpdate{Name: "refs/heads/main", New: last.ID}
	if tip != nil {
		move.Old = tip.ID
	}
	if err := s.Apply(b.Context(), objects.Batch{Put: put, Refs: []objects.RefUpdate{move}}); err != nil {
		b.Fatal(err)
	}
	return last
}

func tipOf(b testing.TB, s objects.Store) objects.ID {
	b.Helper()
	ref, err := objects.ReadRef(b.Context(), s, "refs/heads/main")
	if err != nil {
		b.Fatal(err)
	}
	return ref.Target
}

// compileNew compiles as a process does that was just started.
func (h history) compileNew(b testing.TB, o compile.Options) *compile.Prompt {
	b.Helper()
	s := h.open(b, objects.Options{ReadOnly: true})
	p, err := compile.Chain(b.Context(), s, tipOf(b, s), o)
	if err = errors.Join(err, s.Close()); err != nil {
		b.Fatal(err)
	}
	return p
}

func BenchmarkFlat(b *testing.B) {
	h := grown(b, 100_000)
	for b.Loop() {
		if _, err := os.ReadFile(h.flat); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			h := grown(b, size)
			b.ReportAllocs()
			for b.Loop() {
				h.compileNew(b, compile.Options{})
			}
		})
	}
}

func BenchmarkCompileBudget(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			h := grown(b, size)
			for b.Loop() {
				h.compileNew(b, compile.Options{Budget: 200_000})
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			h := grown(b, size)
			s := h.open(b, objects.Options{ReadOnly: true})
			defer func() { _ = s.Close() }()
			tip := tipOf(b, s)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range commit.WalkReuse(b.Context(), s, tip, 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/commit")
		})
	}
}

func BenchmarkCompileAfterAppend(b *testing.B) {
	h := grown(b, 100_000)
	to := history{path: b.TempDir(), size: h.size}
	if err := os.CopyFS(to.path, os.DirFS(h.path)); err != nil {
		b.Fatal(err)
	}
	s := to.open(b, objects.Options{})
	defer func() { _ = s.Close() }()
	tip, err := commit.Read(b.Context(), s, tipOf(b, s))
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tip = to.add(b, s, tip, commit.Draft{Block: content.User(words(h.size + i)), Time: time.UnixMilli(1784000000000)})
		start := time.Now()
		if _, err := compile.Chain(context.Background(), s, tip.ID, compile.Options{}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us/compile")
}
