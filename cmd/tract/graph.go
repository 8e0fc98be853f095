package main

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

// branchAndTagTips returns the commits that branches and tags point to, each once.
func branchAndTagTips(ctx context.Context, repo *tract.Repo) ([]objects.ID, error) {
	var list []objects.ID
	seen := map[objects.ID]bool{}
	for _, infos := range []iter.Seq2[tract.RefInfo, error]{repo.Refs(ctx, tract.RefQuery{}), repo.Refs(ctx, tract.RefQuery{Tags: true})} {
		for info, err := range infos {
			if err != nil {
				return nil, err
			}
			if !seen[info.Tip] {
				seen[info.Tip], list = true, append(list, info.Tip)
			}
		}
	}
	return list, nil
}

// graph draws the graph of commits to the left of a log.
type graph struct {
	out   *graphWriter
	p     *format.Printer
	draw  bool
	lanes []objects.ID // the commit that each line waits for
}

func newGraph(draw bool, w io.Writer, o format.Options) *graph {
	g := &graphWriter{w: w}
	return &graph{out: g, p: format.New(g, o), draw: draw}
}

// printCommit prints a commit with its part of the graph. Commits must come newest first.
func (g *graph) printCommit(c format.Commit, style format.LogStyle) {
	if !g.draw {
		g.p.Log(c, style)
		return
	}
	at, waiting := slices.Index(g.lanes, c.ID), len(g.lanes)
	if at < 0 {
		at = len(g.lanes)
		g.lanes = append(g.lanes, c.ID)
	}
	for i := len(g.lanes) - 1; i > at; i-- {
		if g.lanes[i] == c.ID {
			g.p.Text(strings.Repeat("| ", i)[:2*i-1] + "/" + strings.Repeat(" /", len(g.lanes)-i-1) + "\n")
			g.lanes = slices.Delete(g.lanes, i, i+1)
			waiting--
		}
	}
	g.lanes[at] = c.Parent()
	g.out.gap, g.out.first, g.out.rest = laneLine(waiting, -1, ""), laneLine(len(g.lanes), at, "* "), laneLine(len(g.lanes), -1, "")
	switch {
	case c.Op == commit.Merge:
		g.out.first += "  "
		g.out.fork = strings.Repeat("| ", at) + `|\` + strings.Repeat(` \`, len(g.lanes)-at-1) + "  "
		g.lanes = slices.Insert(g.lanes, at+1, c.SecondParent())
		g.out.rest = laneLine(len(g.lanes), -1, "")
	case c.Parent().IsZero():
		g.out.rest = laneLine(len(g.lanes), at, "  ")
		g.lanes = slices.Delete(g.lanes, at, at+1)
	}
	g.out.ahead = true
	g.p.Log(c, style)
	if fork := strings.TrimRight(g.out.fork, " "); fork != "" { // nothing came after the first line
		g.out.fork, g.out.rest = "", ""
		g.p.Text(fork + "\n")
	}
	g.out.ahead, g.out.rest = false, ""
}

// skipCommit passes over a commit that is not shown: its lanes continue to its parents.
func (g *graph) skipCommit(c *commit.Commit) {
	for i, id := range g.lanes {
		if id == c.ID {
			g.lanes[i] = c.Parent()
		}
	}
	g.lanes = slices.DeleteFunc(g.lanes, objects.ID.IsZero)
	if c.Op == commit.Merge && slices.Contains(g.lanes, c.Parent()) && !slices.Contains(g.lanes, c.SecondParent()) {
		g.lanes = append(g.lanes, c.SecondParent())
	}
}

// graphWriter prefixes lines: the first with first, the second of a merge with fork, the others
// with rest, and an empty line before the first with gap.
type graphWriter struct {
	w                      io.Writer
	gap, first, fork, rest string
	ahead, inLine          bool // ahead: the first line is still to come
}

// Write adds the prefixes to p and writes all of it, or returns an error.
func (g *graphWriter) Write(b []byte) (int, error) {
	var out []byte
	for line := range bytes.Lines(b) {
		switch {
		case g.inLine:
		case g.ahead && len(line) == 1:
			out = append(out, g.gap...)
		case g.ahead:
			out = append(out, g.first...)
			g.ahead = false
		case g.fork != "":
			out = append(out, g.fork...)
			g.fork = ""
		default:
			out = append(out, g.rest...)
		}
		out = append(out, line...)
		g.inLine = line[len(line)-1] != '\n'
	}
	if _, err := g.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// laneLine returns a line of the graph: a bar for each lane, and mark instead of the bar of lane
// at.
func laneLine(lanes, at int, mark string) string {
	var b strings.Builder
	for i := range lanes {
		if i == at {
			b.WriteString(mark)
			continue
		}
		b.WriteString("| ")
	}
	return b.String()
}
