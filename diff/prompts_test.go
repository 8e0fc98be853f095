package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// line is a history that can be forked.
type line struct {
	t       testing.TB
	store   objects.Store
	tip     *commit.Commit
	commits []*commit.Commit
}

func newLine(t testing.TB) *line { return &line{t: t, store: objects.Memory()} }

// fork returns the same history up to now, with its own future.
func (l *line) fork() *line {
	f := *l
	f.commits = append([]*commit.Commit(nil), l.commits...)
	return &f
}

func (l *line) add(drafts ...commit.Draft) *line {
	l.t.Helper()
	commits, put, err := commit.Write(l.tip, drafts...)
	if err == nil {
		err = l.store.Apply(l.t.Context(), objects.Batch{Put: put})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.commits = append(l.commits, commits...)
	l.tip = commits[len(commits)-1]
	return l
}

func (l *line) append(blocks ...content.Block) *line {
	l.t.Helper()
	for _, b := range blocks {
		l.add(commit.Draft{Block: b})
	}
	return l
}

func (l *line) prompt() *compile.Prompt {
	l.t.Helper()
	p, err := compile.Chain(l.t.Context(), l.store, l.tip.ID, compile.Options{Policy: priority.Policy{IncludeReasoning: true}})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// describe returns a difference as one string: = same, - only on A, + only on B, ~ changed.
func describe(d *Diff) string {
	var b strings.Builder
	words := func(b *Block) string { return strings.ReplaceAll(b.Content.String(), " ", "_") }
	for _, it := range d.Items {
		switch it.Op {
		case Same:
			fmt.Fprintf(&b, " =%s", words(it.A))
		case Remove:
			fmt.Fprintf(&b, " -%s", words(it.A))
		case Add:
			fmt.Fprintf(&b, " +%s", words(it.B))
		case Change:
			fmt.Fprintf(&b, " ~%s>%s", words(it.A), words(it.B))
		}
	}
	return strings.TrimSpace(b.String())
}

// check reports whether a difference gives back both prompts and counts right.
func check(t testing.TB, d *Diff, a, b *compile.Prompt) {
	t.Helper()
	var sideA, sideB []content.Block
	var stat Stat
	for _, it := range d.Items {
		if it.A != nil {
			sideA = append(sideA, it.A.Content)
		}
		if it.B != nil {
			sideB = append(sideB, it.B.Content)
		}
		if (it.A == nil) != (it.Op == Add) || (it.B == nil) != (it.Op == Remove) {
			t.Errorf("%s has sides %v and %v", it.Op, it.A, it.B)
		}
		if it.Op == Same && string(content.Encode(it.A.Content)) != string(content.Encode(it.B.Content)) {
			t.Errorf("%q and %q are not the same", it.A.Content, it.B.Content)
		}
		stat.count(it)
	}
	for _, side := range []struct {
		name string
		got  []content.Block
		p    *compile.Prompt
	}{{"A", sideA, a}, {"B", sideB, b}} {
		var want []content.Block
		for _, m := range side.p.Messages {
			want = append(want, m.Blocks...)
		}
		if fmt.Sprint(side.got) != fmt.Sprint(want) {
			t.Errorf("side %s is %v, want %v", side.name, side.got, want)
		}
	}
	if stat != d.Stat || d.Stat.TokensA != a.Tokens.Effective || d.Stat.TokensB != b.Tokens.Effective {
		t.Errorf("stat is %+v, want %+v, %d and %d tokens", d.Stat, stat, a.Tokens.Effective, b.Tokens.Effective)
	}
	if d.A != a.Head || d.B != b.Head {
		t.Errorf("the heads are %s and %s", d.A.Short(), d.B.Short())
	}
}

func TestPromptsCompared(t *testing.T) {
	user, bot := func(s string) content.Block { return content.User(s) }, func(s string) content.Block { return content.Assistant(s) }
	long := "the quick brown fox jumps over the lazy dog"
	base := newLine(t).append(content.System("rules"), user("one"), bot("two"))
	call := func(id, args string) content.Block { return content.ToolCall{CallID: id, Name: "f", Arguments: args} }
	seal := func(data string) content.Block {
		return content.Reasoning{Text: "hm", Wire: content.Form{Seal: content.Seal{Type: content.Signature, Data: data}}.Wire()}
	}
	for _, c := range []struct {
		name string
		a, b *line
		want string
	}{
		{"the same head", base, base, "=rules =one =two"},
		{"the same words, told apart", newLine(t).append(user("x"), bot("y")), newLine(t).add(commit.Draft{Block: user("x"), Author: "Ada"}).append(bot("y")), "=x =y"},
		{"one goes on", base, base.fork().append(user("three")), "=rules =one =two +three"},
		{"both go on", base.fork().append(user("aaa")), base.fork().append(user("bbb")), "=rules =one =two -aaa +bbb"},
		{"both go on alike", base.fork().append(user(long)), base.fork().append(user(long + " today")), "=rules =one =two ~" + us(long) + ">" + us(long) + "_today"},
		{"likeness needs the same role", base.fork().append(user(long)), base.fork().append(bot(long + " today")), "=rules =one =two -" + us(long) + " +" + us(long) + "_today"},
		{"one in between", newLine(t).append(user("a"), user("c")), newLine(t).append(user("a"), user("b"), user("c")), "=a +b =c"},
		{"moved", newLine(t).append(user("a"), user("b"), user("c")), newLine(t).append(user("c"), user("a"), user("b")), "+c =a =b -c"},
		{"repeated", newLine(t).append(user("a"), user("a"), user("a")), newLine(t).append(user("a"), user("a")), "=a =a -a"},
		{"edited", base, base.fork().add(commit.Draft{Op: commit.Edit, Target: base.commits[1].ID, Block: user("uno")}), "=rules ~one>uno =two"},
		{"skipped", base, base.fork().add(commit.Draft{Op: commit.Annotate, Target: base.commits[1].ID, Priority: priority.Skip}), "=rules -one =two"},
		{"a system block", newLine(t).append(content.System("be kind"), user("x")), newLine(t).append(content.System("rhyme"), user("x")), "~be_kind>rhyme =x"},
		{"a call's id", newLine(t).append(user("x"), call("c1", `{}`)), newLine(t).append(user("x"), call("c1", `{"deep":true}`)), `=x ~{}>{"deep":true}`},
		{"another call", newLine(t).append(user("x"), call("c1", "{}")), newLine(t).append(user("x"), call("c2", `{"deep":true}`)), `=x -{} +{"deep":true}`},
		{"only a seal", newLine(t).append(user("x"), seal("1")), newLine(t).append(user("x"), seal("2")), "=x ~hm>hm"},
		{"nothing in common", newLine(t).append(user("a"), bot("b")), newLine(t).append(user("c"), bot("d")), "-a -b +c +d"},
	} {
		a, b := c.a.prompt(), c.b.prompt()
		d := Prompts(a, b)
		if got := describe(d); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		check(t, d, a, b)
		check(t, Prompts(b, a), b, a)
		if d.Equal() != !strings.ContainsAny(c.want, "+-~") {
			t.Errorf("%s: Equal is %v", c.name, d.Equal())
		}
	}
}

func us(s string) string { return strings.ReplaceAll(s, " ", "_") }

func TestAnEditIsNamed(t *testing.T) {
	base := newLine(t).append(content.User("one"))
	edited := base.fork().add(commit.Draft{Op: commit.Edit, Target: base.tip.ID, Block: content.User("two")})
	it := Prompts(base.prompt(), edited.prompt()).Items[0]
	if it.Op != Change || it.A.Commit != it.B.Commit || !it.A.Edit.IsZero() || it.B.Edit != edited.tip.ID {
		t.Errorf("the item is %+v, %+v", it.A, it.B)
	}
}

func TestAnEmptyPrompt(t *testing.T) {
	full := newLine(t).append(content.User("one")).prompt()
	for want, d := range map[string]*Diff{
		"": Prompts(&compile.Prompt{}, &compile.Prompt{}), "+one": Prompts(&compile.Prompt{}, full), "-one": Prompts(full, &compile.Prompt{}),
	} {
		if got := describe(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// many makes a prompt of n messages without a store; text gives their words.
func many(n int, text func(i int) string) *compile.Prompt {
	p := &compile.Prompt{}
	for i := range n {
		b := content.User(text(i))
		if i%2 == 1 {
			b = content.Assistant(text(i))
		}
		p.Messages = append(p.Messages, content.Message{Role: content.RoleOf(b), Blocks: []content.Block{b}})
		p.Entries = append(p.Entries, compile.Entry{ID: objects.Hash(fmt.Appendf(nil, "%d %s", i, b.Text)), Content: objects.Hash(content.Encode(b))})
		p.BlockEntries = append(p.BlockEntries, int32(i))
	}
	return p
}

func TestHugePrompts(t *testing.T) {
	const n = 10_000
	words := func(i int) string { return fmt.Sprintf("message %d says something of its own, number %d", i, i*i) }
	a := many(n, words)
	for _, c := range []struct {
		name    string
		b       *compile.Prompt
		changed func(s Stat) bool
	}{
		{"the same", many(n, words), func(s Stat) bool { return s.Same == n }},
		{"every 10th edited", many(n, func(i int) string {
			if i%10 == 3 {
				return words(i) + ", once more"
			}
			return words(i)
		}), func(s Stat) bool { return s.Changed == n/10 && s.Same == n-n/10 }},
		{"all edited", many(n, func(i int) string { return words(i) + " again" }), func(s Stat) bool { return s.Same == 0 && s.Changed > n/2 }},
		{"all other", many(n, func(i int) string { return fmt.Sprintf("%x", i*7919) }), func(s Stat) bool { return s.Same == 0 }},
		{"all equal", many(n, func(int) string { return "again" }), func(s Stat) bool { return s.Same == 0 }},
		{"backwards", many(n, func(i int) string { return words(n - 1 - i) }), func(s Stat) bool { return s.Added == s.Removed }},
	} {
		d := Prompts(a, c.b)
		if s := d.Stat; !c.changed(s) || s.Same+s.Changed+s.Removed != n || s.Same+s.Changed+s.Added != n {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func FuzzPrompts(f *testing.F) {
	f.Add("abcabc", "abcxabc")
	f.Add("aaaa", "aa")
	f.Add("", "x")
	f.Add("hello world", "world hello")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 200 {
			return
		}
		prompt := func(s string) *compile.Prompt {
			return many(len(s), func(i int) string { return strings.Repeat(s[i:i+1]+" word ", 1+i%3) })
		}
		left, right := prompt(a), prompt(b)
		d := Prompts(left, right)
		var sides [2]int
		last := Same
		for _, it := range d.Items {
			if it.A != nil {
				if it.A.Commit != left.Entries[sides[0]].ID {
					t.Fatalf("%q, %q: A out of order: %s", a, b, describe(d))
				}
				sides[0]++
			}
			if it.B != nil {
				if it.B.Commit != right.Entries[sides[1]].ID {
					t.Fatalf("%q, %q: B out of order: %s", a, b, describe(d))
				}
				sides[1]++
			}
			if last == Add && it.Op == Remove {
				t.Fatalf("%q, %q: what B has comes before what A has: %s", a, b, describe(d))
			}
			last = it.Op
		}
		if sides != [2]int{len(a), len(b)} {
			t.Fatalf("%q, %q: %v blocks of both", a, b, sides)
		}
	})
}

func BenchmarkPrompts(b *testing.B) {
	words := func(i int) string { return fmt.Sprintf("message %d says something of its own, number %d", i, i*i) }
	left := many(10_000, words)
	right := many(10_000, func(i int) string { return words(i) + " again" })
	for b.Loop() {
		Prompts(left, right)
	}
}
