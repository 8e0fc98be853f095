package inspect

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
)

// Match is one line of a block that a pattern matches.
type Match struct {
	Commit *commit.Commit // with its block, without its origin
	Line   int            // from 1
	Text   string         // of the line, without its line feed
	Spans  [][]int        // the matches in Text: pairs of start and end offsets
}

// GrepOptions narrows a search.
type GrepOptions struct {
	Revs  []string       // search the histories of these; nil: all branches, tags and rescue refs
	Kinds []content.Kind // search only these; nil: all
	First bool           // yield only the first line of a block that matches
}

// Grep yields the lines that a pattern matches, newest block first, as they are found. It also
// searches the text of edits and the reasons of annotations. Of a tool call it searches the name
// and the arguments, as separate lines. Content that cannot be read yields a match without a line,
// with a *[commit.DamagedError]; any other error is the last element.
func Grep(ctx context.Context, repo *tract.Repo, pattern *regexp.Regexp, o GrepOptions) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		tips, err := resolveTips(ctx, repo, o.Revs)
		if err != nil {
			yield(Match{}, fmt.Errorf("grep: %w", err))
			return
		}
		literals := literalsOf(pattern.String())
		for c, err := range history.ContentSeq(ctx, repo.Store(), commit.WalkAll(ctx, repo.Store(), tips, nil)) {
			if c != nil && (c.Tombstone != nil || len(o.Kinds) > 0 && !slices.Contains(o.Kinds, c.Kind)) {
				continue
			}
			if err != nil {
				if !yield(Match{Commit: c}, fmt.Errorf("grep: %w", err)) {
					return
				}
				continue
			}
			if text := textOf(c.Block); literals.mayMatch(text) && !o.search(c, text, pattern, yield) {
				return
			}
		}
	}
}

// search yields the matching lines of a commit, and reports whether the caller wants more.
func (o *GrepOptions) search(c *commit.Commit, text string, pattern *regexp.Regexp, yield func(Match, error) bool) (more bool) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		spans := pattern.FindAllStringIndex(line, -1)
		if spans == nil {
			continue
		}
		if !yield(Match{Commit: c, Line: n, Text: line, Spans: spans}, nil) {
			return false
		}
		if o.First {
			break
		}
	}
	return true
}

// textOf returns the whole text of a block.
func textOf(b content.Block) string {
	switch b := b.(type) {
	case nil:
		return ""
	case content.ToolCall:
		return b.Name + "\n" + b.Arguments
	case content.ToolResult:
		if b.Text == "" {
			return string(b.Parts)
		}
	}
	return b.String()
}
