package compile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// purge replaces the content of commits by tombstones.
func (s *story) purge(names ...string) *story {
	s.t.Helper()
	for _, name := range names {
		c, err := commit.Read(s.t.Context(), s.store, s.ids[name])
		if err == nil {
			err = commit.Load(s.t.Context(), s.store, c)
		}
		if err == nil {
			_, err = objects.Purge(s.t.Context(), s.store, []objects.Tombstone{tombstoneOf(c)}, nil)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return s
}

func tombstoneOf(c *commit.Commit) objects.Tombstone {
	return objects.Tombstone{ID: c.ContentID, Time: time.UnixMilli(0), Why: "too old", Remains: content.Encode(content.Remains(c.Block))}
}

func TestPurgedContentIsLeftOut(t *testing.T) {
	const gone = "purged 1970-01-01: too old"
	cases := []struct {
		name, history string
		purge         []string
		sent          string
		why           map[string]string
	}{
		{"a thought, a question and an answer", chat, []string{"t1", "u2", "a1"}, "s | u1 | t2 a2", map[string]string{"t1": gone, "u2": gone, "a1": gone}},
		{
			"a call goes with its result and its thought", chat + loop,
			[]string{"c3"},
			"s | u1 | t1 a1 | u2 | t2 a2 | u3",
			map[string]string{"c3": gone, "r3": "its call is left out", "t3": "its call is left out"},
		},
		{"a result has a placeholder", chat + loop, []string{"r3"}, "s | u1 | t1 a1 | u2 | t2 a2 | u3 | t3 c3 | r3", map[string]string{"r3": gone}},
		{"a call that waits does not wait any more", chat + "u3=user:tool c3=call:1", []string{"c3"}, "s | u1 | t1 a1 | u2 | t2 a2 | u3", map[string]string{"c3": gone}},
		{"a later instruction still replaces the earlier", "r1=rules:one u1=user:q r2=rules:two", []string{"r2"}, "u1", map[string]string{"r2": gone}},
	}
	for _, c := range cases {
		s := newStory(t).tell(strings.ReplaceAll(c.history, "think:hm", "think:hm."))
		if c.name == cases[0].name {
			s = newStory(t).tell(strings.Replace(c.history, "think:hm", "think:once", 1)) // equal thoughts are one object
		}
		for range 2 { // with what is remembered, too
			s.compile(include)
		}
		p := s.purge(c.purge...).compile(include)
		if got := s.sent(p); got != c.sent {
			t.Errorf("%s: sent %q, want %q", c.name, got, c.sent)
		}
		for name, want := range c.why {
			if got := s.why(p, name); got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, want)
			}
		}
		if len(p.Pending) > 0 {
			t.Errorf("%s: %+v waits", c.name, p.Pending)
		}
	}
}

func TestPurgedToolResultIsAPlaceholder(t *testing.T) {
	s := newStory(t).tell("u=user:q c=call:1 r=result:1 a=assistant:done").purge("r")
	p := s.compile(Options{})
	result, ok := p.Messages[2].Blocks[0].(content.ToolResult)
	if !ok || result.Text != PurgedPlaceholder || result.CallID != "1" {
		t.Errorf("the model is sent %+v", p.Messages[2].Blocks[0])
	}
	if left := p.Entries[2].Tombstone(); left == nil || left.Why != "too old" {
		t.Errorf("the entry has the tombstone %+v", left)
	}
}

func TestEditOfPurgedContentIsSent(t *testing.T) {
	s := newStory(t).tell(chat).edit("u1", "masked").purge("u1")
	if p := s.compile(Options{}); s.sent(p) != "s | u1 | a1 | u2 | a2" || p.Messages[1].Blocks[0].String() != "masked" {
		t.Errorf("sent %q, with %q", s.sent(p), p.Messages[1].Blocks[0])
	}
}

// TestPurgeInRandomHistories purges parts of random histories: what is sent has its
// words, calls and results go together, and what is remembered makes no difference.
func TestPurgeInRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		store := objects.Memory()
		var tip *commit.Commit
		var known []*commit.Commit
		o := Options{Policy: priority.Policy{IncludeReasoning: rapid.Bool().Draw(t, "include")}}
		for i := range rapid.IntRange(1, 25).Draw(t, "commits") {
			d := commit.Draft{Block: content.User("begin")}
			if i > 0 {
				d = drawDraft(t, known)
			}
			commits, put, err := commit.Write(tip, d)
			if err == nil {
				err = store.Apply(ctx, objects.Batch{Put: put})
			}
			if err != nil {
				t.Fatal(err)
			}
			tip = commits[0]
			known = append(known, tip)
			if _, err := Chain(ctx, store, tip.ID, o); err != nil {
				t.Fatal(err)
			}
		}
		var gone []objects.Tombstone
		for _, c := range known {
			if !c.ContentID.IsZero() && rapid.IntRange(0, 3).Draw(t, "purge") == 0 {
				gone = append(gone, tombstoneOf(c))
			}
		}
		if _, err := objects.Purge(ctx, store, gone, nil); err != nil {
			t.Fatal(err)
		}
		var prompts []*Prompt
		for _, r := range []objects.Reader{store, store, forgetful{store}} {
			p, err := Chain(ctx, r, tip.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, p)
		}
		p := prompts[0]
		for _, other := range prompts[1:] {
			if !reflect.DeepEqual(p.Messages, other.Messages) || p.Tokens != other.Tokens || !reflect.DeepEqual(p.SentFlags(), other.SentFlags()) {
				t.Fatalf("two prompts of one history differ:\n%+v\n%+v", p.Messages, other.Messages)
			}
		}
		waits := map[string]int{}
		for _, m := range p.Messages {
			for _, b := range m.Blocks {
				switch b := b.(type) {
				case content.ToolCall:
					waits[b.CallID]++
				case content.ToolResult:
					if waits[b.CallID]--; waits[b.CallID] < 0 {
						t.Fatalf("the result of %s is sent without a call: %+v", b.CallID, p.Messages)
					}
				}
			}
		}
		for _, e := range p.Entries {
			if e.InPrompt && e.Tombstone() != nil && e.Kind != content.KindToolResult {
				t.Fatalf("purged words of %s are sent", e.Kind)
			}
		}
	})
}

// noticing is a store that notices, at its second look at the memo, that words were
// purged: by another process, while the history was walked.
type noticing struct {
	objects.Store
	looks int
	purge func()
}

func (n *noticing) Cache() *objects.Cache {
	if n.looks++; n.looks == 2 {
		n.purge()
	}
	return n.Store.(objects.Cacher).Cache()
}

// TestPurgeEmptiesTheCache purges the reason of an annotation while a prompt is
// compiled: no prompt after that has the words.
func TestPurgeEmptiesTheCache(t *testing.T) {
	s := newStory(t).tell("u=user:q a=assistant:yes").annotate("u", priority.Pinned, "secret reason")
	p := s.compile(Options{})
	note := p.Entries[len(p.Entries)-1].Change()
	s = newStory(t).tell("u=user:q a=assistant:yes").annotate("u", priority.Pinned, "secret reason") // with nothing remembered
	reads := &noticing{Store: s.store, purge: func() {
		if _, err := objects.Purge(t.Context(), s.store, []objects.Tombstone{tombstoneOf(note)}, nil); err != nil {
			t.Error(err)
		}
	}}
	for range 2 {
		p, err := Chain(t.Context(), reads, s.tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			if e.Why() == "annotated: secret reason" || e.Change() != nil && e.Change().Block != nil && e.Change().Block.String() != "" {
				t.Fatalf("%s has the words still: %q", e.ID.Short(), e.Why())
			}
		}
	}
}
