package compile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
	"github.com/tract-vcs/tract/priority"
)

// story writes histories for tests. Every commit has a name.
type story struct {
	t     *testing.T
	store objects.Store
	tip   *commit.Commit
	ids   map[string]objects.ID
}

func newStory(t *testing.T) *story {
	return &story{t: t, store: objects.Memory(), ids: map[string]objects.ID{}}
}

func (s *story) add(name string, d commit.Draft) {
	s.t.Helper()
	d.Time = time.UnixMilli(int64(len(s.ids)) * 1000)
	commits, put, err := commit.Write(s.tip, d)
	if err == nil {
		err = s.store.Apply(s.t.Context(), objects.Batch{Put: put})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.tip = commits[0]
	s.ids[name] = s.tip.ID
}

// tell adds blocks written as "name=kind/index:text", several in one string
// with blanks between. The text of a call or a result is its call id.
func (s *story) tell(lines string) *story {
	s.t.Helper()
	for line := range strings.FieldsSeq(lines) {
		name, rest, _ := strings.Cut(line, "=")
		kind, text, _ := strings.Cut(rest, ":")
		kind, place, _ := strings.Cut(kind, "/")
		d := commit.Draft{Index: strings.Count(place, "+")}
		switch kind {
		case "think":
			d.Block = content.Reasoning{Text: text}
		case "call":
			d.Block = content.ToolCall{CallID: text, Name: "f"}
		case "server":
			d.Block = content.ToolCall{CallID: text, Name: "f", Server: true}
		case "result":
			d.Block = content.ToolResult{CallID: text, Text: "ok"}
		case "rules":
			d.Block = content.Text{Of: content.KindSystem, Name: "rules", Text: text}
		default:
			k, err := content.ParseKind(kind)
			if err != nil {
				s.t.Fatal(err)
			}
			d.Block = content.Text{Of: k, Text: text}
		}
		s.add(name, d)
	}
	return s
}

func (s *story) annotate(name string, l priority.Level, reason string) *story {
	s.t.Helper()
	d := commit.Draft{Op: commit.Annotate, Target: s.ids[name], Priority: l}
	if reason != "" {
		d.Block = content.Note(reason)
	}
	s.add(fmt.Sprintf("note%d", len(s.ids)), d)
	return s
}

func (s *story) edit(name, text string) *story {
	s.t.Helper()
	s.add(fmt.Sprintf("edit%d", len(s.ids)), commit.Draft{Op: commit.Edit, Target: s.ids[name], Block: content.User(text)})
	return s
}

func (s *story) compile(o Options) *Prompt {
	s.t.Helper()
	p, err := Chain(s.t.Context(), s.store, s.tip.ID, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// sent names what a prompt sends, a bar between messages.
func (s *story) sent(p *Prompt) string {
	names := map[objects.ID]string{}
	for name, id := range s.ids {
		names[id] = name
	}
	var messages []string
	for _, commits := range p.MessageCommits() {
		var m []string
		for _, id := range commits {
			m = append(m, names[id])
		}
		messages = append(messages, strings.Join(m, " "))
	}
	return strings.Join(messages, " | ")
}

func (s *story) why(p *Prompt, name string) string {
	for _, e := range p.Entries {
		if e.ID == s.ids[name] {
			return string(e.Why())
		}
	}
	return ""
}

const (
	chat = "s=system:x u1=user:q t1=think:hm a1=assistant/+:yes u2=user:more t2=think:hm a2=assistant/+:no "
	loop = "u3=user:tool t3=think:hm c3=call/+:1 r3=result:1 "

	closed = "t4=think:so a4=assistant/+:done u5=user:thanks t5=think:aha a5=assistant/+:bye"
)

// keep is for a target that demands the reasoning of turns with tool calls.
var (
	keep     = Options{KeepToolReasoning: true}
	stripped = Options{KeepToolReasoning: true, Policy: priority.Policy{Strip: priority.StripAll}}
)

var include = Options{Policy: priority.Policy{IncludeReasoning: true}}

func TestWhatIsSent(t *testing.T) {
	strip := func(s priority.Strip, include bool) Options {
		return Options{Policy: priority.Policy{Strip: s, IncludeReasoning: include}}
	}
	for _, c := range []struct {
		name  string
		story func(*story)
		o     Options
		want  string
	}{
		{"reasoning is left out by default", func(s *story) { s.tell(chat) }, Options{}, "s | u1 | a1 | u2 | a2"},
		{"and put in when asked", func(s *story) { s.tell(chat) }, include, "s | u1 | t1 a1 | u2 | t2 a2"},
		{"an explicit skip beats the flag", func(s *story) { s.tell(chat).annotate("t1", priority.Skip, "") }, include, "s | u1 | a1 | u2 | t2 a2"},
		{"an explicit pin needs no flag", func(s *story) { s.tell(chat).annotate("t1", priority.Pinned, "key") }, Options{}, "s | u1 | t1 a1 | u2 | a2"},
		{"the last annotation wins", func(s *story) { s.tell(chat).annotate("t1", priority.Pinned, "").annotate("t1", priority.Skip, "") }, include, "s | u1 | a1 | u2 | t2 a2"},
		{"default takes an annotation back", func(s *story) { s.tell(chat).annotate("a1", priority.Skip, "").annotate("a1", priority.Unset, "") }, Options{}, "s | u1 | a1 | u2 | a2"},
		{"skip takes a user message out", func(s *story) { s.tell(chat).annotate("u1", priority.Skip, "") }, Options{}, "s | a1 | u2 | a2"},

		{"strip none, include", func(s *story) { s.tell(chat) }, strip(priority.StripNone, true), "s | u1 | t1 a1 | u2 | t2 a2"},
		{"strip none", func(s *story) { s.tell(chat) }, strip(priority.StripNone, false), "s | u1 | a1 | u2 | a2"},
		{"strip all but last, include", func(s *story) { s.tell(chat) }, strip(priority.StripAllButLast, true), "s | u1 | a1 | u2 | t2 a2"},
		{"strip all but last", func(s *story) { s.tell(chat) }, strip(priority.StripAllButLast, false), "s | u1 | a1 | u2 | a2"},
		{"strip all, include", func(s *story) { s.tell(chat) }, strip(priority.StripAll, true), "s | u1 | a1 | u2 | a2"},
		{"strip all", func(s *story) { s.tell(chat) }, strip(priority.StripAll, false), "s | u1 | a1 | u2 | a2"},

		{"an open turn is whole", func(s *story) { s.tell(chat + loop) }, Options{}, "s | u1 | a1 | u2 | a2 | u3 | t3 c3 | r3"},
		{"strip does not reach into it", func(s *story) { s.tell(chat + loop) }, strip(priority.StripAll, false), "s | u1 | a1 | u2 | a2 | u3 | t3 c3 | r3"},
		{"it stays open after the answer", func(s *story) { s.tell(loop + "t4=think:so a4=assistant/+:done") }, Options{}, "u3 | t3 c3 | r3 | t4 a4"},
		{"and closes at the next question", func(s *story) { s.tell(loop + "t4=think:so a4=assistant/+:done u5=user:thanks") }, Options{}, "u3 | c3 | r3 | a4 | u5"},
		{"a target that does not want it", func(s *story) { s.tell(loop) }, Options{DropOpenReasoning: true}, "u3 | c3 | r3"},
		{"a closed turn with calls, where it is demanded", func(s *story) { s.tell(loop + closed) }, keep, "u3 | t3 c3 | r3 | t4 a4 | u5 | a5"},
		{"whatever is stripped", func(s *story) { s.tell(loop + closed) }, stripped, "u3 | t3 c3 | r3 | t4 a4 | u5 | a5"},
		{"but for what a person skips", func(s *story) { s.tell(loop+closed).annotate("t3", priority.Skip, "") }, keep, "u3 | c3 | r3 | t4 a4 | u5 | a5"},
		{"no call of the turn is sent", func(s *story) { s.tell(loop+closed).annotate("c3", priority.Skip, "") }, keep, "u3 | a4 | u5 | a5"},
		{"nor is one, and reasoning is included", func(s *story) { s.tell(loop+closed).annotate("c3", priority.Skip, "") }, Options{KeepToolReasoning: true, Policy: include.Policy}, "u3 | t3 | t4 a4 | u5 | t5 a5"},
		{"a call that nothing answered", func(s *story) { s.tell("u3=user:tool t3=think:hm c3=call/+:1 u5=user:thanks") }, keep, "u3 | u5"},
		{"a skip in it is obeyed", func(s *story) { s.tell(loop).annotate("t3", priority.Skip, "") }, Options{}, "u3 | c3 | r3"},

		{"a result comes with its call", func(s *story) { s.tell(loop).annotate("c3", priority.Skip, "") }, Options{}, "u3 | t3"},
		{"a call comes with its result", func(s *story) { s.tell(loop).annotate("r3", priority.Skip, "") }, Options{}, "u3 | t3"},
		{"results follow the order of their calls", func(s *story) { s.tell("u=user:q c1=call:1 c2=call/+:2 r2=result:2 r1=result:1") }, Options{}, "u | c1 c2 | r1 r2"},
		{"an id may be used again", func(s *story) { s.tell("u=user:q c1=call:1 r1=result:1 c2=call:1 r2=result:1") }, Options{}, "u | c1 | r1 | c2 | r2"},
		{"a result without a call is left out", func(s *story) { s.tell("u=user:q r=result:9 a=assistant:x") }, Options{}, "u | a"},
		{"a result after the next question is left out", func(s *story) { s.tell("u=user:q c=call:1 v=user:w r=result:1") }, Options{}, "u | v"},
		{"a pending call is shown", func(s *story) { s.tell("u=user:q t=think:hm c=call/+:1") }, Options{}, "u | t c"},
		{"and left out with its thoughts when the talk goes on", func(s *story) { s.tell("u=user:q t=think:hm c=call/+:1 v=user:w") }, include, "u | v"},
		{"a thought before another call stays", func(s *story) {
			s.tell("u=user:q t1=think:hm c1=call/+:1 t2=think/++:ha c2=call/+++:2 r1=result:1 v=user:w")
		}, include, "u | t1 c1 | r1 | v"},
		{"a server's call needs no result", func(s *story) { s.tell("u=user:q c=server:1 a=assistant/+:x v=user:w") }, Options{}, "u | c a | v"},

		{"a note is never sent", func(s *story) { s.tell("u=user:q n=note:good c=call:1 r=result:1").annotate("n", priority.Pinned, "") }, Options{}, "u | c | r"},
		{"not with a role either", func(s *story) {
			note := content.Text{Wire: content.Form{Role: content.RoleUser}.Wire(), Of: content.KindNote, Text: "good"}
			s.tell("u=user:q").add("n", commit.Draft{Block: note, Priority: priority.Pinned})
		}, Options{}, "u"},
		{"a named system block is replaced", func(s *story) { s.tell("x=rules:a y=system:b u=user:q z=rules:c v=user:w") }, Options{}, "z | y | u | v"},
		{"twice", func(s *story) { s.tell("x=rules:a u=user:q y=rules:b z=rules:c") }, Options{}, "z | u"},
		{"messages keep apart", func(s *story) { s.tell("u=user:q t1=think:a a1=assistant/+:b t2=think:c a2=assistant/+:d v=user:w") }, Options{}, "u | a1 | a2 | v"},
		{"nothing but skipped commits", func(s *story) { s.tell("t=think:hm") }, Options{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			p := s.compile(c.o)
			if got := s.sent(p); got != c.want {
				t.Errorf("sent %q\nwant %q", got, c.want)
			}
			if sum := p.Tokens.Effective + p.Tokens.Hidden + p.Tokens.HiddenReasoning; sum != p.Tokens.Raw {
				t.Errorf("tokens %+v do not add up", p.Tokens)
			}
		})
	}
}

func TestEveryCommitHasAReason(t *testing.T) {
	s := newStory(t).tell(chat+loop).annotate("a1", priority.Pinned, "it matters").edit("u1", "Q?")
	p := s.compile(Options{})
	if len(p.Entries) != len(s.ids) {
		t.Fatalf("%d entries for %d commits", len(p.Entries), len(s.ids))
	}
	for name, want := range map[string]string{
		"t1": "default", "a1": "annotated: it matters", "t3": "open turn", "c3": "open turn", "u1": "default",
	} {
		if got := s.why(p, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := newStory(t).tell(loop + closed); got.why(got.compile(keep), "t3") != string(priority.WhyToolTurn) || got.why(got.compile(keep), "t5") != "default" {
		t.Errorf("the reasoning of a tool turn: %q", got.why(got.compile(keep), "t3"))
	}
	for _, c := range []struct {
		history, left string
		o             Options
		want          string
	}{
		{"u1=user:q a1=assistant:yes u2=user:more", "a1", Options{Budget: 3}, "budget"},
		{"u=user:q t=think:hm c=call/+:1 v=user:w", "c", Options{}, "no result came before the next turn"},
		{"u=user:q t=think:hm c=call/+:1 v=user:w", "t", include, "its call is left out"},
		{"u=user:q c=call:1 d=call:1 r=result:1", "c", Options{}, "its id is used again before a result came"},
		{"u=user:q r=result:9", "r", Options{}, "its call is not in this turn"},
		{"u=user:q c=call:1 r=result:1 again=result:1", "again", Options{}, "its call has a result already"},
		{chat, "t1", stripped, "reasoning.strip_from_context"},
		{chat, "t1", include, "reasoning.include_in_context"},
		{"u=user:q n=note:good", "n", Options{}, "default"},
	} {
		s := newStory(t).tell(c.history)
		if got := s.why(s.compile(c.o), c.left); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.left, c.history, got, c.want)
		}
	}
	replaced := newStory(t).tell("x=rules:a u=user:q y=rules:b")
	if got, want := replaced.why(replaced.compile(Options{}), "x"), "replaced by "+replaced.ids["y"].Short(); got != want {
		t.Errorf("an instruction that was replaced: %q, want %q", got, want)
	}
	for name, want := range map[string]string{"c3": "its result is left out", "r3": "its call is left out"} {
		s := newStory(t).tell(loop).annotate(map[string]string{"c3": "r3", "r3": "c3"}[name], priority.Skip, "")
		if got := s.why(s.compile(Options{}), name); got != want {
			t.Errorf("%s without the other: %q, want %q", name, got, want)
		}
	}
	last := p.Entries[len(p.Entries)-1]
	if last.InPrompt || last.Why() != priority.Why("edits "+s.ids["u1"].Short()) {
		t.Errorf("the edit itself: %+v", last)
	}
}

func TestLastEditIsSent(t *testing.T) {
	s := newStory(t).tell("u=user:first a=assistant:fine")
	before := s.tip.ID
	s.edit("u", "second").edit("u", "third")
	if got := s.compile(Options{}).Messages[0].Blocks[0].String(); got != "third" {
		t.Errorf("the prompt says %q", got)
	}
	p, err := Chain(t.Context(), s.store, before, Options{})
	if err != nil || p.Messages[0].Blocks[0].String() != "first" {
		t.Errorf("the prompt of then says %v, %v", p.Messages, err)
	}
}

// TestTimeTravelHasThePrioritiesOfThatTime compiles a history at several times and with
// several options, in turn: what was compiled before makes no difference.
func TestTimeTravelHasThePrioritiesOfThatTime(t *testing.T) {
	s := newStory(t).tell(chat)
	first := s.tip.ID
	second := s.annotate("u1", priority.Skip, "").tip.ID
	third := s.annotate("u1", priority.Normal, "").annotate("t1", priority.Skip, "").tip.ID
	for range 2 {
		for _, c := range []struct {
			head objects.ID
			o    Options
			want string
		}{
			{first, Options{}, "s | u1 | a1 | u2 | a2"},
			{first, include, "s | u1 | t1 a1 | u2 | t2 a2"},
			{third, include, "s | u1 | a1 | u2 | t2 a2"},
			{second, Options{}, "s | a1 | u2 | a2"},
			{second, include, "s | t1 a1 | u2 | t2 a2"},
			{third, Options{}, "s | u1 | a1 | u2 | a2"},
		} {
			p, err := Chain(t.Context(), s.store, c.head, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.sent(p); got != c.want {
				t.Errorf("at %s with %+v: %q, want %q", c.head.Short(), c.o, got, c.want)
			}
		}
	}
}

func TestBudgetDropsWholeTurnsFromTheOldest(t *testing.T) {
	long := strings.Repeat("w", 400)
	s := newStory(t).tell("s=system:" + long + " u1=user:" + long + " a1=assistant:" + long + " u2=user:" + long + " a2=assistant:" + long + " u3=user:" + long)
	for _, c := range []struct {
		budget int
		want   string
	}{
		{0, "s | u1 | a1 | u2 | a2 | u3"}, {700, "s | u1 | a1 | u2 | a2 | u3"}, {600, "s | u2 | a2 | u3"}, {300, "s | u3"},
	} {
		p := s.compile(Options{Budget: c.budget})
		if got := s.sent(p); got != c.want {
			t.Errorf("budget %d: sent %q, want %q", c.budget, got, c.want)
		}
		if c.budget > 0 && p.Tokens.Effective > c.budget {
			t.Errorf("budget %d: %d tokens", c.budget, p.Tokens.Effective)
		}
	}
	s.annotate("a1", priority.Pinned, "")
	if got := s.sent(s.compile(Options{Budget: 420})); got != "s | a1 | u3" {
		t.Errorf("with a pin: %q", got)
	}
	_, err := Chain(t.Context(), s.store, s.tip.ID, Options{Budget: 200})
	if over := (*priority.OverBudgetError)(nil); !errors.As(err, &over) || over.Fixed < 300 {
		t.Errorf("a budget that the pins do not fit: %v", err)
	}
}

func TestBudgetNeverCutsAnOpenTurnOrAPair(t *testing.T) {
	long := strings.Repeat("w", 400)
	s := newStory(t).tell("u1=user:" + long + " t1=think:" + long + " c1=call/+:1 r1=result:1 u2=user:" + long + " t2=think:" + long + " c2=call/+:2 r2=result:2")
	if got := s.sent(s.compile(Options{Budget: 250})); got != "u2 | t2 c2 | r2" {
		t.Errorf("sent %q", got)
	}
	s.annotate("c1", priority.Pinned, "")
	if got := s.sent(s.compile(Options{Budget: 280})); got != "c1 | r1 | u2 | t2 c2 | r2" {
		t.Errorf("with a pinned call: %q", got)
	}
	s.annotate("c1", priority.Unset, "").annotate("r1", priority.Pinned, "")
	if got := s.sent(s.compile(Options{Budget: 280})); got != "c1 | r1 | u2 | t2 c2 | r2" {
		t.Errorf("with a pinned result: %q", got)
	}
}

func TestPendingCallsAreListed(t *testing.T) {
	s := newStory(t).tell("u=user:q c1=call:1 c2=call/+:2 s3=server/++:3 r1=result:1")
	p := s.compile(Options{})
	if len(p.Pending) != 1 || p.Pending[0].Call.CallID != "2" || p.Pending[0].Commit != s.ids["c2"] {
		t.Errorf("pending %+v", p.Pending)
	}
}

func TestAppendingNeverChangesWhatCameBefore(t *testing.T) {
	for name, reader := range map[string]func(objects.Store) objects.Reader{
		"remembered": func(s objects.Store) objects.Reader { return s },
		"anew":       func(s objects.Store) objects.Reader { return forgetful{s} },
	} {
		s := newStory(t)
		var before []content.Message
		for line := range strings.FieldsSeq(chat + "u3=user:tool t3=think:hm c3=call/+:1 c4=call/++:2 r3=result:1 r4=result:2 " + closed) {
			s.tell(line)
			p, err := Chain(t.Context(), reader(s.store), s.tip.ID, include)
			if err != nil {
				t.Fatal(err)
			}
			now := p.Messages
			for i, m := range before {
				last := i == len(before)-1
				if !last && !reflect.DeepEqual(m, now[i]) || last && !reflect.DeepEqual(m.Blocks, now[i].Blocks[:len(m.Blocks)]) {
					t.Fatalf("%s: after %s message %d changed", name, line, i)
				}
			}
			before = now
		}
	}
}

// TestSkippedContentIsNotRead takes the content of every thought away: a prompt
// that leaves them out does not notice.
func TestSkippedContentIsNotRead(t *testing.T) {
	s := newStory(t).tell(chat)
	pruned := objects.Memory()
	for obj, err := range objectstest.ChainWithContent(t.Context(), s.store, s.tip.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if b, err := content.Decode(obj.Data); obj.Kind == objects.KindContent && err == nil && b.Kind() == content.KindReasoning {
			continue
		}
		if err := pruned.Apply(t.Context(), objects.Batch{Put: []objects.Object{obj}}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Chain(t.Context(), pruned, s.tip.ID, Options{})
	if err != nil || s.sent(p) != "s | u1 | a1 | u2 | a2" {
		t.Errorf("compile without the thoughts: %v", err)
	}
	if _, err := Chain(t.Context(), pruned, s.tip.ID, include); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("compile that wants them: %v, want ErrNotFound", err)
	}
}

func TestManifestGivesBackWhatWasSent(t *testing.T) {
	store := objects.Memory()
	var prev objects.ID
	var before []bool
	for _, now := range [][]bool{
		{true, false, true}, {true, false, true, true, false}, {true, false, false, false, false, true}, {false}, {}, {true, true},
	} {
		m := &Manifest{
			Prev: prev, Head: objects.Hash([]byte("head")), Tools: objects.Hash([]byte("tools")), Provider: "openai", Dialect: "chat", Model: "m",
			ToolChoice: "auto", Encoder: 1, Compiled: objects.Hash([]byte("body")), Sent: objects.Hash([]byte("sent")),
			Options:         Options{Policy: priority.Policy{Strip: priority.StripAll, IncludeReasoning: true}, Budget: 100, DropOpenReasoning: true, KeepToolReasoning: true},
			RequestSettings: map[string]string{"stream": "true", "temperature": "0.5"}, UncommittedReasoning: 2,
		}
		m.SetSentFlags(before, now)
		obj := m.Object()
		if err := store.Apply(t.Context(), objects.Batch{Put: []objects.Object{obj}}); err != nil {
			t.Fatal(err)
		}
		got, err := ReadManifest(t.Context(), store, obj.ID)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("read %+v, %v\nwant %+v", got, err, m)
		}
		flags, err := ReadSentFlags(t.Context(), store, obj.ID)
		if err != nil || !slices.Equal(flags, now) {
			t.Fatalf("flags %v, %v; want %v", flags, err, now)
		}
		prev, before = obj.ID, now
	}
}

func TestManifestOfALongHistoryIsSmall(t *testing.T) {
	before := make([]bool, 100_000)
	for i := range before {
		before[i] = i%3 != 0
	}
	m := &Manifest{Head: objects.Hash(nil)}
	m.SetSentFlags(before, append(slices.Clone(before), true, false, true))
	if n := len(m.Object().Data); n > 32 {
		t.Errorf("%d bytes for three new commits", n)
	}
}

// TestAnEntryIsSmall: there is one for each commit of a history, and a prompt keeps them.
func TestAnEntryIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size > 144 {
		t.Errorf("an entry takes %d bytes", size)
	}
}
