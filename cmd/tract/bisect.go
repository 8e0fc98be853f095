package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

func newBisect(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "bisect", Short: "Find the commit that made a prompt go wrong",
		Long: `Find the first commit whose prompt is bad, by binary search between a commit whose prompt
is good and one whose prompt is bad. Each step names a commit: look at its prompt with
tract compile REV, or send the prompt to a model, and then mark the commit good or bad.
tract bisect run lets a command do that. Merged commits are searched too: the first bad
commit is one whose prompt is bad while the prompts of all its parents are good; it can be
the merge itself.

The state of the search is stored in the store's folder; HEAD does not move.`,
		Example: `  tract bisect start HEAD 3fa2c1d
  tract bisect good
  tract bisect bad
  tract bisect run sh -c '! grep -q deprecated'
  tract bisect reset`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bisectStatus(cmd.Context()) },
	}
	mark := func(word, short string) *cobra.Command {
		return &cobra.Command{
			Use: word + " [REV...]", Short: short, Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, args []string) error { return a.bisectMark(cmd.Context(), word, args) },
		}
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "start [BAD [GOOD...]]", Short: "Start a search", Args: cobra.ArbitraryArgs,
			RunE: func(cmd *cobra.Command, args []string) error { return a.bisectStart(cmd.Context(), args) },
		},
		mark("good", "Mark the named commit, or others, as good"),
		mark("bad", "Mark the named commit, or another, as bad"),
		mark("skip", "Mark the named commit as untestable"),
		newBisectRun(a),
		&cobra.Command{
			Use: "log", Short: "Show the marks so far", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.bisectLog(cmd.Context()) },
		},
		&cobra.Command{
			Use: "reset", Short: "End the search", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.bisectReset() },
		},
	)
	return cmd
}

// bisection is the state of a search.
type bisection struct {
	log            []string   // the marks, as they are stored
	lastMarkedBad  objects.ID // the commit that was marked bad last; zero: none yet
	firstMarkedBad objects.ID // the commit that was marked bad first
	good           []objects.ID
	skip           map[objects.ID]bool

	suspects []*commit.Commit // may be the first bad commit, oldest first; the last one is bad
	next     *commit.Commit   // commit to test next; nil: none
	found    bool             // one suspect is left
}

func newBisection() *bisection {
	return &bisection{log: []string{"start"}, skip: map[objects.ID]bool{}}
}

// mark adds a mark (good, bad or skip) for a commit. It reports whether the word is known.
func (b *bisection) mark(word string, id objects.ID) (known bool) {
	switch word {
	case "bad":
		b.lastMarkedBad = id
		if b.firstMarkedBad.IsZero() {
			b.firstMarkedBad = id
		}
	case "good":
		b.good = append(b.good, id)
	case "skip":
		b.skip[id] = true
	default:
		return false
	}
	b.log = append(b.log, word+" "+id.String())
	return true
}

// chooseNext computes the remaining suspects and the commit to test next.
func (b *bisection) chooseNext(ctx context.Context, r objects.Reader) error {
	b.suspects, b.next, b.found = nil, nil, false
	if b.lastMarkedBad.IsZero() || len(b.good) == 0 {
		return nil
	}
	reached, err := b.hasGoodAncestor(ctx, r)
	for c, e := range commit.History(ctx, r, []objects.ID{b.lastMarkedBad}, b.good) {
		if err = cmp.Or(err, e); err != nil {
			break
		}
		b.suspects = append(b.suspects, c)
	}
	if err != nil {
		return fmt.Errorf("bisect: %w", err)
	}
	if !reached || len(b.suspects) == 0 {
		err := fmt.Errorf("bisect: no good commit is an ancestor of the bad one, %s", b.lastMarkedBad.Short())
		return &failure{code: codeNo, kind: "bisect", cause: err, hint: "tract bisect reset, then tract bisect start BAD GOOD"}
	}
	slices.Reverse(b.suspects)
	if b.found = len(b.suspects) == 1; b.found {
		return nil
	}
	best := 0
	for i, has := range ancestorCounts(b.suspects) {
		// Choose the commit with about half of the suspects among its ancestors; the last one is
		// known to be bad.
		uneven := max(2*has-len(b.suspects), len(b.suspects)-2*has)
		if at := b.suspects[i]; at.ID != b.lastMarkedBad && !b.skip[at.ID] && (b.next == nil || uneven <= best) {
			b.next, best = at, uneven
		}
	}
	return nil
}

// hasGoodAncestor reports whether the commit that was marked bad first has a good ancestor. One
// that was marked later may be on a branch that began earlier.
func (b *bisection) hasGoodAncestor(ctx context.Context, r objects.Reader) (bool, error) {
	for _, id := range b.good {
		base, err := commit.MergeBase(ctx, r, b.firstMarkedBad, id)
		if err != nil || base == id {
			return err == nil, err
		}
	}
	return false, nil
}

// ancestorCounts returns for each commit of a list how many commits of the list are its ancestors,
// itself included. Parents must come before children.
func ancestorCounts(list []*commit.Commit) []int {
	at := make(map[objects.ID]int, len(list))
	counts := make([]int, len(list))
	for i, c := range list {
		at[c.ID] = i
		var parents []int
		for _, id := range c.Parents {
			if k, ok := at[id]; ok {
				parents = append(parents, k)
			}
		}
		if len(parents) == 1 {
			counts[i] = counts[parents[0]] + 1
		} else {
			counts[i] = 1 + countReachable(list, at, parents)
		}
	}
	return counts
}

// countReachable counts the commits of the list that are reachable from the indexes in from.
func countReachable(list []*commit.Commit, at map[objects.ID]int, from []int) int {
	seen := make([]bool, len(list))
	n := 0
	for len(from) > 0 {
		i := from[len(from)-1]
		if from = from[:len(from)-1]; seen[i] {
			continue
		}
		seen[i] = true
		n++
		for _, id := range list[i].Parents {
			if k, ok := at[id]; ok {
				from = append(from, k)
			}
		}
	}
	return n
}

// stepsLeft estimates how many more commits have to be tested.
func (b *bisection) stepsLeft() int { return bits.Len(uint(max(len(b.suspects)-1, 0))) }

type bisectJSON struct {
	State    string       `json:"state"` // waiting, testing, found or stuck
	Needs    []string     `json:"needs,omitempty"`
	Next     objects.ID   `json:"next,omitzero"`
	Left     int          `json:"left"`
	Steps    int          `json:"steps"`
	FirstBad any          `json:"first_bad,omitempty"`
	Suspects []objects.ID `json:"suspects,omitempty"`
}

// printBisection prints the state of a search.
func (a *app) printBisection(ctx context.Context, b *bisection) error {
	v := bisectJSON{Left: len(b.suspects), Steps: b.stepsLeft()}
	p := a.printer()
	if a.json {
		p = format.New(io.Discard, format.Options{})
	}
	switch {
	case b.lastMarkedBad.IsZero() || len(b.good) == 0:
		v.State = "waiting"
		if b.lastMarkedBad.IsZero() {
			v.Needs = append(v.Needs, "bad")
		}
		if len(b.good) == 0 {
			v.Needs = append(v.Needs, "good")
		}
		for _, word := range v.Needs {
			p.Text("waiting for a " + word + " commit: tract bisect " + word + " REV\n")
		}
	case b.found:
		v.State = "found"
		c := b.suspects[0]
		if err := commit.LoadAll(ctx, a.repo.Store(), c); err != nil {
			return err
		}
		shown := format.Commit{Commit: c, Level: c.Priority}
		v.FirstBad = format.CommitJSON(shown)
		p.Text(p.Warn(c.ID.Short()) + " is the first bad commit\n\n")
		p.Log(shown, format.LogStyle{Patch: true})
	case b.next == nil:
		v.State = "stuck"
		p.Text("only skipped commits are left; the first bad commit is one of:\n")
		for _, c := range b.suspects {
			v.Suspects = append(v.Suspects, c.ID)
			p.Text(c.ID.Short() + "\n")
		}
	default:
		v.State, v.Next = "testing", b.next.ID
		if err := commit.LoadAll(ctx, a.repo.Store(), b.next); err != nil {
			return err
		}
		p.Text(fmt.Sprintf("%s left, about %s\n", count(len(b.suspects)-1, "commit"), count(b.stepsLeft(), "step")))
		p.Log(format.Commit{Commit: b.next, Level: b.next.Priority}, format.LogStyle{Oneline: true})
	}
	if a.json {
		return format.Encode(a.out, v)
	}
	return p.Err()
}
