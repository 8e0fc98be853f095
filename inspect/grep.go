package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// Match is one line of a block that a pattern matches.
type Match struct {
	Commit *commit.Commit // with its block, without its origin
	Line   int            // from 1
	Text   string         // of the line, without its line feed
	Spans  [][]int        // where the pattern matches in Text: pairs of beginning and end
}

// GrepOptions narrows a search.
type GrepOptions struct {
	Revs  []string       // search the histories of these; nil: all branches, tags and rescue refs
	Kinds []content.Kind // search only these; nil: all
	First bool           // yield only the first line of a block that matches
}

// Grep yields the lines that a pattern matches, newest block first, as they are found. The
// text of edits and the reasons of annotations are searched too. The name and the arguments
// of a tool call are lines. Content that cannot be read yields a match without a line, with
// a *[commit.DamagedError]; any other error is the last element.
func Grep(ctx context.Context, repo *tract.Repo, pattern *regexp.Regexp, o GrepOptions) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		tips, err := tips(ctx, repo, o.Revs)
		if err != nil {
			yield(Match{}, fmt.Errorf("grep: %w", err))
			return
		}
		for c, err := range contents(ctx, repo.Store(), tips, literalsOf(pattern.String()).in) {
			if c != nil && len(o.Kinds) > 0 && !slices.Contains(o.Kinds, c.Kind) {
				continue
			}
			if err != nil {
				if !yield(Match{Commit: c}, fmt.Errorf("grep: %w", err)) {
					return
				}
				continue
			}
			if !o.search(c, pattern, yield) {
				return
			}
		}
	}
}

// search yields the lines of a commit that match, and reports whether more are wanted.
func (o *GrepOptions) search(c *commit.Commit, pattern *regexp.Regexp, yield func(Match, error) bool) (more bool) {
	n := 0
	for line := range strings.Lines(textOf(c.Block)) {
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

// textOf is the whole text of a block.
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

// contents yields the commits that tips reach and whose content may accepts, with their
// blocks. The headers of the others are not parsed. An error with a commit is about its
// content; any other is the last element.
func contents(ctx context.Context, r objects.Store, tips []objects.ID, may func(data []byte) bool) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		var header objects.Object // whose content comes next; without an id: none
		for obj, err := range objects.Sift(ctx, r, tips, may) {
			if err == nil && header.ID.IsZero() {
				header = obj
				continue
			}
			of := header
			header = objects.Object{}
			if errors.Is(err, objects.ErrPurged) {
				continue
			}
			c, err := filled(ctx, r, of, obj, err)
			if c == nil && err == nil {
				continue
			}
			if !yield(c, err) || c == nil {
				return
			}
		}
	}
}

// filled is a commit with its block, from the objects of both; nil when the object that
// was read with it is not its content.
func filled(ctx context.Context, r objects.Reader, header, record objects.Object, bad error) (*commit.Commit, error) {
	if bad != nil && (header.ID.IsZero() || !errors.Is(bad, objects.ErrCorrupt)) {
		return nil, bad
	}
	c, err := commit.Parse(header)
	of := record.ID
	if damage := (*objects.CorruptError)(nil); errors.As(bad, &damage) {
		of = damage.ID
	}
	if err != nil || c.ContentID != of {
		return nil, err
	}
	if bad == nil {
		bad = commit.SetBlock(ctx, r, c, record)
	}
	switch {
	case history.IsDamage(bad):
		return c, &commit.DamagedError{Commit: c.ID, Cause: bad}
	case bad != nil:
		return nil, bad
	}
	return c, nil
}
