package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Match is one line of a block that a pattern matches.
type Match struct {
	Commit *commit.Commit // with its block, without its origin
	Line   int            // from 1
	Text   string         // of the line, without its line feed
	Spans  [][]int        // where the pattern matches in Text: pairs of beginning and end
}

// Grep is what to look for.
type Grep struct {
	Pattern *regexp.Regexp
	Kinds   []content.Kind // only these; nil: all, thoughts, calls and results among them
	Revs    []string       // histories of these; nil: of all branches, tags and rescued replies
	First   bool           // only the first line of a block that matches
}

// Grep yields the lines of a history that a pattern matches, newest block first,
// as they are found. The words of edits and the reasons of annotations are looked
// at too. Of a tool call the name and the arguments are lines. Words that cannot be read
// give a match without a line, with a *[DamagedError]; any other error is the last element.
func (r *Repo) Grep(ctx context.Context, g Grep) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		tips, err := r.tips(ctx, g.Revs...)
		if err != nil {
			yield(Match{}, fmt.Errorf("grep: %w", err))
			return
		}
		s := &search{Grep: g, literals: literalsOf(g.Pattern.String()), kinds: map[content.Kind]bool{}}
		for _, k := range g.Kinds {
			s.kinds[k] = true
		}
		for c, err := range r.contents(ctx, tips, s.literals.in) {
			if err != nil {
				if c != nil && len(s.kinds) > 0 && !s.kinds[c.Kind] {
					continue
				}
				if !yield(Match{Commit: c}, fmt.Errorf("grep: %w", err)) {
					return
				}
				continue
			}
			if !s.look(c, yield) {
				return
			}
		}
	}
}

// search is a Grep on its way.
type search struct {
	Grep
	literals literals // of which every match has one
	kinds    map[content.Kind]bool
}

// look yields the lines of a commit that match; more is false when nobody wants
// the next.
func (s *search) look(c *commit.Commit, yield func(Match, error) bool) (more bool) {
	if len(s.kinds) > 0 && !s.kinds[c.Kind] {
		return true
	}
	n := 0
	for line := range strings.Lines(wordsOf(c.Block)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		spans := s.Pattern.FindAllStringIndex(line, -1)
		if spans == nil {
			continue
		}
		if !yield(Match{Commit: c, Line: n, Text: line, Spans: spans}, nil) {
			return false
		}
		if s.First {
			break
		}
	}
	return true
}

// wordsOf is all words of a block.
func wordsOf(b content.Block) string {
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

// contents yields the commits that tips reach and whose content may let through,
// with their blocks. The headers of the others are not parsed. An error with a commit is
// about its words; any other is the last element.
func (r *Repo) contents(ctx context.Context, tips []objects.ID, may func(data []byte) bool) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		var header objects.Object // whose content comes next; without an id: none
		for obj, err := range objects.Sift(ctx, r.store, tips, may) {
			if err == nil && header.ID.IsZero() {
				header = obj
				continue
			}
			of := header
			header = objects.Object{}
			if errors.Is(err, objects.ErrErased) {
				continue
			}
			c, err := filled(ctx, r.store, of, obj, err)
			if c == nil && err == nil {
				continue
			}
			if !yield(c, err) || c == nil {
				return
			}
		}
	}
}

// filled is a commit with its block, from the objects of both; nil when what was
// read with it is not its content.
func filled(ctx context.Context, r objects.Reader, header, record objects.Object, bad error) (*commit.Commit, error) {
	if bad != nil && (header.ID.IsZero() || !errors.Is(bad, objects.ErrCorrupt)) {
		return nil, bad
	}
	c, err := commit.Parse(header)
	of := record.ID
	if damage := (*objects.CorruptError)(nil); errors.As(bad, &damage) {
		of = damage.ID
	}
	if err != nil || c.Content != of {
		return nil, err
	}
	if bad == nil {
		bad = commit.Fill(ctx, r, c, record)
	}
	switch {
	case isDamage(bad):
		return c, &DamagedError{Commit: c.ID, Cause: bad}
	case bad != nil:
		return nil, bad
	}
	return c, nil
}
