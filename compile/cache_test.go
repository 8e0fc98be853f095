package compile

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// forgetful is a store that remembers nothing.
type forgetful struct{ objects.Reader }

func drawDraft(t *rapid.T, known []*commit.Commit) commit.Draft {
	id := func() string { return rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "call") }
	text := func() string { return rapid.StringN(0, 6, -1).Draw(t, "text") }
	d := commit.Draft{Index: rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "index")}
	d.Priority = rapid.SampledFrom([]priority.Level{0, 0, 0, 0, priority.Skip, priority.Pinned}).Draw(t, "priority")
	switch rapid.IntRange(0, 24).Draw(t, "what") {
	case 0, 1, 2, 3, 4, 5:
		d.Block, d.Index = content.User(text()), 0
	case 6, 7, 8:
		d.Block = content.Assistant(text())
	case 9, 10, 11:
		d.Block = content.Reasoning{Text: text()}
	case 12, 13, 14:
		d.Block = content.ToolCall{CallID: id(), Name: "f"}
	case 15, 16, 17, 18:
		d.Block = content.ToolResult{CallID: id(), Text: text()}
	case 19:
		d.Block = content.System(text())
	case 20:
		d.Block = content.Text{Of: content.KindSystem, Name: "rules", Text: text()}
	case 21:
		d.Block = content.ToolCall{CallID: id(), Name: "f", Server: true}
	default:
		target := rapid.SampledFrom(known).Draw(t, "target")
		if target.Op != commit.Append {
			d.Block = content.Note(text())
			break
		}
		if d.Op, d.Target = commit.Annotate, target.ID; rapid.Bool().Draw(t, "edit") {
			d.Op, d.Block = commit.Edit, content.User(text())
		}
	}
	return d
}

// difference returns where two prompts differ first.
func difference(a, b *Prompt) string {
	for i := range min(len(a.Entries), len(b.Entries)) {
		if x, y := a.Entries[i], b.Entries[i]; !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("entry %d of %d:\n%+v\n%+v", i, len(a.Entries), x, y)
		}
	}
	return fmt.Sprintf("\n%+v\n%+v", a, b)
}

// TestCachedPromptsEqualFreshOnes grows histories at random, forks them, and
// compiles on the way with a store that remembers and one that does not. What was
// compiled before stays what it was.
func TestCachedPromptsEqualFreshOnes(t *testing.T) {
	used := 0
	rapid.Check(t, func(t *rapid.T) {
		store := objects.Memory()
		ctx := t.Context()
		options := []Options{
			{},
			{Policy: priority.Policy{IncludeReasoning: true}},
			{DropOpenReasoning: true},
			{Policy: priority.Policy{IncludeReasoning: true, Strip: priority.StripAllButLast}},
			{KeepToolReasoning: true},
			{KeepToolReasoning: true, Policy: priority.Policy{IncludeReasoning: true, Strip: priority.StripAllButLast}},
		}[rapid.IntRange(0, 5).Draw(t, "options")]
		var all []*commit.Commit
		var tip *commit.Commit
		type pair struct{ remembered, fresh *Prompt }
		var prompts []pair
		for i := range rapid.IntRange(5, 60).Draw(t, "commits") {
			known := all
			if len(known) == 0 {
				known = []*commit.Commit{{Op: commit.Edit}}
			}
			d := drawDraft(t, known)
			d.Key.Text = fmt.Sprint(i)
			commits, put, err := commit.Write(tip, d)
			if err == nil {
				err = store.Apply(ctx, objects.Batch{Put: put})
			}
			if err != nil {
				t.Fatal(err)
			}
			tip, all = commits[0], append(all, commits[0])
			if rapid.IntRange(0, 9).Draw(t, "fork") == 0 {
				tip = rapid.SampledFrom(all[max(0, len(all)-8):]).Draw(t, "tip")
			}
			if !rapid.Bool().Draw(t, "compile") {
				continue
			}
			if m := promptCacheOf(store, options); len(m.prefixes) > 0 {
				used++
			}
			var p pair
			if p.remembered, err = Chain(ctx, store, tip.ID, options); err != nil {
				t.Fatal(err)
			}
			if p.fresh, err = Chain(ctx, forgetful{store}, tip.ID, options); err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, p)
			if !reflect.DeepEqual(p.remembered, p.fresh) {
				t.Fatalf("commit %d: %s", i, difference(p.remembered, p.fresh))
			}
		}
		for i, p := range prompts {
			if !reflect.DeepEqual(p.remembered, p.fresh) {
				t.Fatalf("prompt %d has changed\n%+v\nit was\n%+v", i, p.remembered, p.fresh)
			}
		}
	})
	if used == 0 {
		t.Error("nothing was ever remembered")
	}
}

// TestCompileAfterAnAppendReadsWhatIsNew holds a long history to the cost of a turn.
func TestCompileAfterAnAppendReadsWhatIsNew(t *testing.T) {
	s := newStory(t)
	for i := range 300 {
		s.tell(fmt.Sprintf("u%d=user:q t%d=think:hm a%d=assistant/+:yes", i, i, i))
	}
	s.compile(Options{})
	s.tell("u=user:more")
	after := s.compile(Options{})
	s.tell("a=assistant:yes v=user:again")
	s.compile(Options{})
	last := s.compile(Options{}) // twice: who only looks again takes nothing away
	if &after.Entries[0] != &last.Entries[0] || &after.Messages[0] != &last.Messages[0] {
		t.Error("a prompt that goes on from another does not share its memory")
	}
	if len(after.Entries) != 901 || len(last.Entries) != 903 || s.sent(last) != s.sent(after)+" | a | v" {
		t.Errorf("%d entries, then %d", len(after.Entries), len(last.Entries))
	}
	h, err := collect(t.Context(), s.store, s.tip.ID, promptCacheOf(s.store, Options{}).walkStops())
	if err != nil || len(h.entries) > 4 {
		t.Errorf("a compile walks over %d commits, %v", len(h.entries), err)
	}
	s.tell("b=assistant:on c=assistant:and d=assistant:on")
	if again := s.compile(Options{}); &again.Entries[0] != &last.Entries[0] {
		t.Error("a prompt that was compiled twice does not share its memory with the next")
	}
}

// counting is a store that counts what is read.
type counting struct {
	objects.Store
	commits, blocks int
}

func (c *counting) Cache() *objects.Cache { return c.Store.(objects.Cacher).Cache() }

func (c *counting) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for obj, err := range c.Store.Chain(ctx, tip, o) {
			if c.commits++; !yield(obj, err) {
				return
			}
		}
	}
}

func (c *counting) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	c.blocks += len(ids)
	return c.Store.Get(ctx, ids)
}

// TestCompileInALongTurnReadsWhatIsNew appends to a turn that is long already, as
// agents do.
func TestCompileInALongTurnReadsWhatIsNew(t *testing.T) {
	s := newStory(t)
	s.tell("u=user:q a=assistant:yes v=user:go")
	for i := range 100 {
		s.tell(fmt.Sprintf("a%d=assistant/+:on", i))
	}
	before := s.compile(Options{})
	s.tell("b=assistant/+:on")
	reads := &counting{Store: s.store}
	p, err := Chain(t.Context(), reads, s.tip.ID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.sent(p) != s.sent(before)+" b" {
		t.Errorf("%s is sent after %s", s.sent(p), s.sent(before))
	}
	if reads.commits > 2 || reads.blocks != 1 {
		t.Errorf("after one append %d commits and %d blocks are read", reads.commits, reads.blocks)
	}
}

// TestReadSentFlagsReadsOnlyNewManifests has a conversation of many requests: what is read
// to tell what the last one sent does not grow with it.
func TestReadSentFlagsReadsOnlyNewManifests(t *testing.T) {
	store := &counting{Store: objects.Memory()}
	var prev objects.ID
	var sent []bool
	for turn := range 300 {
		store.commits = 0
		before, err := ReadSentFlags(t.Context(), store, prev)
		if err != nil || !slices.Equal(before, sent) {
			t.Fatalf("turn %d: %d flags of %d: %v", turn, len(before), len(sent), err)
		}
		if store.commits > 3 {
			t.Fatalf("turn %d: %d manifests were read", turn, store.commits)
		}
		sent = append(slices.Clone(sent), true, false, true)
		m := &Manifest{Prev: prev, Head: objects.Hash([]byte("head"))}
		m.SetSentFlags(before, sent)
		obj := m.Object()
		if err := store.Apply(t.Context(), objects.Batch{Put: []objects.Object{obj}}); err != nil {
			t.Fatal(err)
		}
		prev = obj.ID
	}
	if again, err := ReadSentFlags(t.Context(), forgetful{store}, prev); err != nil || !slices.Equal(again, sent) {
		t.Errorf("read anew: %d flags of %d: %v", len(again), len(sent), err)
	}
}
