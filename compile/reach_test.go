package compile

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// TestBudgetReadsWhatItReaches compiles histories made at random with a budget: once
// from their end and their marks, once from all of it. The prompts are the same, and
// the reasons too when they are asked for.
func TestBudgetReadsWhatItReaches(t *testing.T) {
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		store, ctx := objects.Memory(), t.Context()
		var all []*commit.Commit
		var tip *commit.Commit
		for i := range rapid.IntRange(20, 80).Draw(t, "commits") {
			known := all
			if len(known) == 0 {
				known = []*commit.Commit{{Op: commit.Edit}}
			}
			d := drawDraft(t, known)
			if d.Key = fmt.Sprint(i); d.Op == commit.Annotate {
				d.Priority = rapid.SampledFrom([]priority.Level{priority.Unset, priority.Skip, priority.Normal, priority.Pinned}).Draw(t, "annotated")
			}
			commits, put, err := commit.Write(tip, d)
			if err == nil {
				err = store.Apply(ctx, objects.Batch{Put: put})
			}
			if err != nil {
				t.Fatal(err)
			}
			tip, all = commits[0], append(all, commits[0])
			if rapid.IntRange(0, 19).Draw(t, "fork") == 0 { // annotations may then speak of what is elsewhere
				tip = rapid.SampledFrom(all[max(0, len(all)-8):]).Draw(t, "tip")
			}
		}
		o := Options{Budget: rapid.IntRange(1, 150).Draw(t, "budget"), Policy: priority.Policy{IncludeReasoning: rapid.Bool().Draw(t, "reasoning")}, KeepToolTurns: rapid.Bool().Draw(t, "keep")}
		part, errPart := chain(ctx, store, tip.ID, o, 4)
		whole, err := chain(ctx, store, tip.ID, o, 1<<30)
		if fmt.Sprint(errPart) != fmt.Sprint(err) {
			t.Fatalf("from its end %v, whole %v", errPart, err)
		}
		if err != nil {
			return
		}
		if part.Before > 0 {
			reached++
		}
		if !reflect.DeepEqual(part.Messages, whole.Messages) || !reflect.DeepEqual(commitsOf(part), commitsOf(whole)) ||
			!reflect.DeepEqual(part.Pending, whole.Pending) || !reflect.DeepEqual(part.Flags(), whole.Flags()) {
			t.Fatalf("budget %d of %d commits, %d unread\n%v\n%v", o.Budget, len(whole.Entries), part.Before, part.Messages, whole.Messages)
		}
		if got, want := part.Tokens.Effective, whole.Tokens.Effective; got != want {
			t.Fatalf("%d tokens, want %d", got, want)
		}
		if err := part.Complete(ctx, store); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(commitsOf(part), commitsOf(whole)) {
			t.Fatal("its blocks are of other commits when it is complete")
		}
		for i := range whole.Entries {
			x, y := part.Entries[i], whole.Entries[i]
			if x.ID != y.ID || x.Sent != y.Sent || x.Why() != y.Why() || x.Level != y.Level || x.Turn != y.Turn || x.Edit() != y.Edit() || x.Tokens != y.Tokens {
				t.Fatalf("entry %d:\n%+v\n%+v", i, x, y)
			}
		}
	})
	if reached == 0 {
		t.Error("every history was read whole")
	}
}

// commitsOf lists the commits of the blocks of each message.
func commitsOf(p *Prompt) (list [][]objects.ID) {
	for _, commits := range p.Commits() {
		list = append(list, slices.Clone(commits))
	}
	return list
}
