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

// contents yields the commits that tips reach and whose content mayMatch accepts, each once,
// with their blocks. It follows the first parents of a tip to the root or to a commit that it
// has passed, then those of the next tip, and last those of the other parents of merges.
// mayMatch is given the record of the content; a list of chunks is always accepted. The
// headers of the other commits are not parsed. An error with a commit is about its content;
// any other is the last element.
func contents(ctx context.Context, r objects.Store, tips []objects.ID, mayMatch func(record []byte) bool) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		w := contentWalk{store: r, mayMatch: mayMatch, seen: map[objects.ID]bool{}, tips: slices.Clone(tips), yield: yield}
		for len(w.tips) > 0 {
			tip := w.tips[0]
			w.tips = w.tips[1:]
			if !w.seen[tip] && !w.followFirstParents(ctx, tip) {
				return
			}
		}
	}
}

// contentWalk is the state of one walk over contents.
type contentWalk struct {
	store    objects.Store
	mayMatch func(record []byte) bool
	seen     map[objects.ID]bool // commits
	tips     []objects.ID        // of the chains to come
	yield    func(*commit.Commit, error) bool
}

// followFirstParents yields what matches on one chain. It reports whether the walk goes on.
func (w *contentWalk) followFirstParents(ctx context.Context, tip objects.ID) (more bool) {
	var header objects.Object // the commit whose content comes next; zero: none
	for obj, err := range w.store.Chain(ctx, tip, objects.ChainOptions{Content: true}) {
		if header.ID.IsZero() {
			if err != nil {
				w.yield(nil, err)
				return false
			}
			if w.seen[obj.ID] {
				return true
			}
			w.seen[obj.ID] = true
			w.tips = append(w.tips, obj.Parents[min(1, len(obj.Parents)):]...)
			if len(obj.Links) > 0 {
				header = obj
			}
			continue
		}
		c, err := w.match(ctx, header, obj, err)
		header = objects.Object{}
		if (c != nil || err != nil) && (!w.yield(c, err) || c == nil) {
			return false
		}
	}
	return true
}

// match returns the commit of a header with its block, if that may match. record is the
// content, or what could be read of it when bad is not nil. nil without an error: it cannot
// match, or the first link of the commit is not its content.
func (w *contentWalk) match(ctx context.Context, header, record objects.Object, bad error) (*commit.Commit, error) {
	of := record.ID
	damage := (*objects.CorruptError)(nil)
	switch {
	case errors.Is(bad, objects.ErrPurged):
		return nil, nil
	case bad == nil && record.Kind != objects.KindList && !w.mayMatch(record.Data):
		return nil, nil
	case errors.As(bad, &damage) && !damage.ID.IsZero():
		of = damage.ID
	case bad != nil:
		return nil, bad
	}
	c, err := commit.Parse(header)
	if err != nil || c.ContentID != of {
		return nil, err
	}
	if bad == nil {
		bad = commit.SetBlock(ctx, w.store, c, record)
	}
	switch {
	case history.IsDamaged(bad):
		return c, &commit.DamagedError{Commit: c.ID, Cause: bad}
	case bad != nil:
		return nil, bad
	}
	return c, nil
}
