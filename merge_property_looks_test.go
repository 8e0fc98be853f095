package tract_test

import (
	"fmt"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// look compiles every branch and holds it to what is promised of all prompts.
func (w *world) look() {
	w.t.Helper()
	for _, name := range w.branches {
		var first string
		for i, repo := range w.repos {
			p, err := repo.Compile(w.t.Context(), name, tract.CompileOptions{IncludeReasoning: true})
			if err != nil {
				w.t.Fatal(err)
			}
			text := fmt.Sprint(p.Messages, commitsOf(p), p.Tokens, p.Pending, p.SentFlags())
			if i > 0 && text != first {
				w.t.Fatalf("branch %s: two stores give two prompts:\n%s\n%s", name, first, text)
			}
			if first = text; i > 0 || w.seen[p.Head] != "" {
				continue
			}
			w.seen[p.Head] = text
			fresh := must(compile.Chain(w.t.Context(), struct{ objects.Reader }{repo.Store()}, p.Head, compile.Options{Policy: priority.Policy{IncludeReasoning: true}}))(w.t)
			if got := fmt.Sprint(fresh.Messages, commitsOf(fresh), fresh.Tokens, fresh.Pending, fresh.SentFlags()); got != text {
				w.t.Fatalf("branch %s: what is remembered gives another prompt:\n%s\n%s", name, text, got)
			}
			w.once(p)
			w.paired(p)
			w.firstParent(repo, p)
		}
	}
}

// once: every commit of the history is an entry once, and every block that is sent
// is sent once.
func (w *world) once(p *compile.Prompt) {
	w.t.Helper()
	in, parents := map[objects.ID]bool{}, map[objects.ID][]objects.ID{}
	for c, err := range commit.History(w.t.Context(), w.repos[0].Store(), []objects.ID{p.Head}, nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		if in[c.ID] {
			w.t.Fatalf("history of %s has %s twice", p.Head.Short(), c.ID.Short())
		}
		in[c.ID], parents[c.ID] = true, c.Parents
	}
	has := map[objects.ID]bool{}
	for _, e := range p.Entries {
		for _, parent := range parents[e.ID] {
			if !has[parent] {
				w.t.Fatalf("entry %s comes before its parent %s", e.ID.Short(), parent.Short())
			}
		}
		if has[e.ID] || !in[e.ID] {
			w.t.Fatalf("entry %s is there twice, or is not of the history", e.ID.Short())
		}
		has[e.ID] = true
	}
	if len(has) != len(in) {
		w.t.Fatalf("%d entries for a history of %d commits", len(has), len(in))
	}
	sent := slices.Concat(commitsOf(p)...)
	slices.SortFunc(sent, objects.ID.Compare)
	if len(slices.Compact(sent)) != len(p.BlockEntries) {
		w.t.Fatalf("a block of %s is sent twice", p.Head.Short())
	}
}

// paired: a call is followed by its result, unless it is the last thing said; no
// result stands alone.
func (w *world) paired(p *compile.Prompt) {
	w.t.Helper()
	waiting := map[string]int{}
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case content.ToolCall:
				waiting[b.CallID]++
			case content.ToolResult:
				if waiting[b.CallID]--; waiting[b.CallID] < 0 {
					w.t.Fatalf("%s sends the result %s without its call", p.Head.Short(), b.CallID)
				}
			}
		}
	}
	for _, pending := range p.Pending {
		waiting[pending.Call.CallID]--
	}
	for id, n := range waiting {
		if n != 0 {
			w.t.Fatalf("%s sends the call %s without its result", p.Head.Short(), id)
		}
	}
}

// firstParent: what the first parent had comes first, and what is derived is right.
func (w *world) firstParent(repo *tract.Repo, p *compile.Prompt) {
	w.t.Helper()
	ctx, store := w.t.Context(), repo.Store()
	header := func(id objects.ID) *commit.Commit { return must(commit.Read(ctx, store, id))(w.t) }
	head := header(p.Head)
	depth := uint64(0)
	for _, parent := range head.Parents {
		depth = max(depth, header(parent).Depth+1)
	}
	if head.Depth != depth {
		w.t.Fatalf("%s has depth %d, want %d", head.ID.Short(), head.Depth, depth)
	}
	if head.Op == commit.Merge {
		line, err := commit.Linearize(ctx, store, head.Parent())
		if err != nil {
			w.t.Fatal(err)
		}
		for i, c := range line {
			if p.Entries[i].ID != c.ID {
				w.t.Fatalf("entry %d of merge %s is not that of its first parent", i, head.ID.Short())
			}
		}
		brings := must(commit.IncomingCommits(ctx, store, head.Parents[0], head.Parents[1]))(w.t)
		if len(line)+len(brings)+1 != len(p.Entries) {
			w.t.Fatalf("merge %s brings %d commits to %d and has %d", head.ID.Short(), len(brings), len(line), len(p.Entries))
		}
	}
}
