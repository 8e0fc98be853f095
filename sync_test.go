package tract_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

// say makes a message.
func say(role content.Role, blocks ...content.Block) content.Message {
	return content.Message{Role: role, Blocks: blocks}
}

// dialogue makes messages of texts: of the user and the assistant in turn.
func dialogue(texts ...string) (list []content.Message) {
	for i, text := range texts {
		if i%2 == 0 {
			list = append(list, say(content.RoleUser, content.User(text)))
		} else {
			list = append(list, say(content.RoleAssistant, content.Assistant(text)))
		}
	}
	return list
}

// transcript writes messages in short.
func transcript(list []content.Message) string {
	var parts []string
	for _, m := range list {
		part := m.Role.String()[:1]
		for _, b := range m.Blocks {
			sort := ""
			if k := b.Kind(); k == content.KindReasoning || k == content.KindToolCall || k == content.KindToolResult {
				sort = k.String() + "="
			}
			part += " " + sort + b.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " | ")
}

func saidOn(t *testing.T, b *tract.Branch) string {
	t.Helper()
	return transcript(must(b.Messages(t.Context()))(t))
}

func TestMessagesAreTheWholeConversation(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	if list := must(main.Messages(ctx))(t); len(list) != 0 {
		t.Errorf("an empty branch has %v", list)
	}
	must(onlyID(main.Append(ctx, []content.Block{content.System("Be brief.")}, tract.AppendOptions{})))(t)
	must(main.Append(ctx, []content.Block{content.User("Q1"), content.Note("for people")}, tract.AppendOptions{}))(t)
	must(main.Append(ctx, []content.Block{content.Reasoning{Text: "R1", Format: content.FormatParsed}, content.Assistant("I look."), callOf("1"), callOf("2")}, tract.AppendOptions{}))(t)
	must(main.Append(ctx, []content.Block{resultOf("2")}, tract.AppendOptions{}))(t)
	must(main.Append(ctx, []content.Block{resultOf("1")}, tract.AppendOptions{}))(t)
	answer := must(onlyID(main.Append(ctx, []content.Block{content.Assistant("A1")}, tract.AppendOptions{})))(t)
	must(main.AppendUser(ctx, "Q2"))(t)
	must(main.AppendUser(ctx, "Q3"))(t)
	must(main.Annotate(ctx, answer.String(), priority.Skip, "hidden"))(t)
	must(main.Edit(ctx, answer.String(), "A1 was wrong", tract.EditOptions{}))(t)
	must(main.Edit(ctx, answer.String(), "A1, corrected", tract.EditOptions{}))(t)
	want := "s Be brief. | u Q1 | a reasoning=R1 I look. tool-call={} tool-call={} | t tool-result=found tool-result=found | a A1, corrected | u Q2 | u Q3"
	if have := saidOn(t, main); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

func TestMessagesShowWhatWasPurged(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	var ids []objects.ID
	for _, b := range []content.Block{
		content.User("secret question"),
		content.Reasoning{Text: "secret", Format: content.FormatParsed},
		content.ToolCall{CallID: "1", Name: "look", Arguments: `{"secret":1}`},
		content.ToolResult{CallID: "1", Text: "secret"},
		content.Media{Of: content.KindImage, MediaType: "image/png", Data: "secret"},
		content.Assistant("A"),
	} {
		ids = append(ids, must(main.Append(ctx, []content.Block{b}, tract.AppendOptions{}))(t)...)
	}
	original := must(main.Messages(ctx))(t)
	edited := must(main.Edit(ctx, ids[5].String(), "secret answer", tract.EditOptions{}))(t)
	var revs []string
	for _, id := range append(ids[:5:5], edited) {
		revs = append(revs, id.String())
	}
	must(maintain.Purge(ctx, repo, maintain.PurgeOptions{Revs: revs}))(t)
	want := "u [purged] | a reasoning=[purged] tool-call=[purged] | t tool-result=[purged] | u [purged] | a [purged]"
	if have := saidOn(t, main); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	for name, list := range map[string][]content.Message{"placeholders": must(main.Messages(ctx))(t), "what was purged": original} {
		got := must(main.Sync(ctx, list))(t)
		if got.Branch != "main" || len(got.Commits) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	fork := must(main.Sync(ctx, append(original[:1:1], dialogue("other")...)))(t)
	if have := saidOn(t, repo.Branch(fork.Branch)); strings.Contains(have, "secret") || !strings.HasPrefix(have, "u [purged] | u other") {
		t.Errorf("the fork has %s", have)
	}
	fork = must(main.Sync(ctx, append(dialogue("before"), original...)))(t)
	if have := saidOn(t, repo.Branch(fork.Branch)); strings.Contains(have, "secret question") {
		t.Errorf("what was purged is stored again: %s", have)
	}
}

func TestSyncCommitsWhatIsNewInOneOperation(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	list := []content.Message{
		say(content.RoleSystem, content.System("Be brief.")), say(content.RoleUser, content.User("Q1")),
		say(content.RoleAssistant, content.Reasoning{Text: "R", Format: content.FormatParsed}, callOf("1")),
		say(content.RoleUser, resultOf("1")), // as Anthropic has it
	}
	got := must(main.Sync(ctx, list))(t)
	if got.Branch != "main" || got.Known != 0 || len(got.Commits) != 5 || got.Tip != got.Commits[4] || got.Tip != must(main.Tip(ctx))(t) {
		t.Errorf("first: %+v", got)
	}
	again := must(main.Sync(ctx, list))(t)
	if again.Branch != "main" || again.Known != 4 || len(again.Commits) != 0 || again.Tip != got.Tip {
		t.Errorf("again: %+v", again)
	}
	if n := len(must(main.Messages(ctx))(t)); n != 4 {
		t.Errorf("%d messages", n)
	}
	list = append(list, say(content.RoleAssistant, content.Assistant("A1")), say(content.RoleUser, content.User("Q2")))
	if got = must(main.Sync(ctx, list))(t); got.Known != 4 || len(got.Commits) != 2 {
		t.Errorf("more: %+v", got)
	}
	if got = must(main.Sync(ctx, list[:3]))(t); got.Known != 3 || len(got.Commits) != 0 || got.Branch != "main" || got.Tip != must(main.Tip(ctx))(t) {
		t.Errorf("a shorter list: %+v", got)
	}
	operations := 0
	for op, err := range repo.Operations(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if operations++; op.Note.Command != "sync" {
			t.Errorf("operation %q", op.Note.Command)
		}
	}
	if operations != 2 {
		t.Errorf("%d operations", operations)
	}
}

// TestSyncRecognizesRewrittenLists syncs one conversation in the forms in which clients send it
// again.
func TestSyncRecognizesRewrittenLists(t *testing.T) {
	call := func(id, arguments string) content.Block {
		return content.ToolCall{CallID: id, Name: "look", Arguments: arguments}
	}
	result := func(id, text string) content.Block { return content.ToolResult{CallID: id, Text: text} }
	thought := content.Reasoning{Text: "hm", Format: content.FormatParsed}
	system := say(content.RoleSystem, content.System("Be brief."))
	base := []content.Message{
		system, say(content.RoleUser, content.User("Q"), content.User("more\n  indented")),
		say(content.RoleAssistant, thought, content.Assistant("I "), content.Assistant("look."), call("1", `{"a":1,"b":[2]}`), call("2", `{}`)),
		say(content.RoleTool, result("1", "x"), result("2", "y")), say(content.RoleAssistant, content.Assistant("A"), thought),
	}
	for name, c := range map[string]struct {
		list []content.Message
		new  int // commits
	}{
		"arguments written anew, reasoning dropped, texts joined, other ids, another order": {[]content.Message{
			system, say(content.RoleUser, content.User("Q\n\nmore\n  indented\n")),
			say(content.RoleAssistant, content.Assistant("I look."), call("b", ``), call("a", ` {"b": [2.0], "a": 1}`)),
			say(content.RoleUser, result("b", "y"), result("a", "x")), say(content.RoleAssistant, content.Assistant("A")),
		}, 0},
		"without roles":                          {[]content.Message{{Blocks: slices.Concat(base[0].Blocks, base[1].Blocks, base[2].Blocks, base[3].Blocks, base[4].Blocks)}}, 0},
		"without instructions":                   {base[1:], 0},
		"without instructions, and more":         {append(base[1:len(base):len(base)], dialogue("Q2")...), 1},
		"empty blocks":                           {append(base[:len(base):len(base)], say(content.RoleUser, content.User(""))), 0},
		"reasoning at the end that is not there": {append(base[:len(base):len(base)], say(content.RoleAssistant, content.Reasoning{Text: "new"})), 1},
		"nothing":                                {nil, 0},
	} {
		repo := open(t)
		main := repo.Branch("main")
		must(main.Sync(t.Context(), base))(t)
		got := must(main.Sync(t.Context(), c.list))(t)
		if len(got.Commits) != c.new || got.Branch != "main" || got.Tip != must(main.Tip(t.Context()))(t) {
			t.Errorf("%s: %+v", name, got)
		}
		if again := must(main.Sync(t.Context(), c.list))(t); len(again.Commits) != 0 || again.Tip != got.Tip {
			t.Errorf("%s, again: %+v", name, again)
		}
	}
	for name, c := range map[string]struct {
		i    int
		with content.Message
	}{
		"another argument":     {2, say(content.RoleAssistant, content.Assistant("I look."), call("1", `{"a":2,"b":[2]}`), call("2", `{}`))},
		"results exchanged":    {3, say(content.RoleTool, result("1", "y"), result("2", "x"))},
		"another indentation":  {1, say(content.RoleUser, content.User("Q\nmore\n indented"))},
		"another role":         {1, say(content.RoleSystem, content.User("Q\nmore\n  indented"))},
		"another answer":       {4, say(content.RoleAssistant, content.Assistant("B"))},
		"another instruction":  {0, say(content.RoleSystem, content.System("Be long."))},
		"a result that failed": {3, say(content.RoleTool, result("1", "x"), result("2", "failed"))},
	} {
		repo := open(t)
		main := repo.Branch("main")
		tip := must(main.Sync(t.Context(), base))(t).Tip
		list := slices.Clone(base)
		list[c.i] = c.with
		got := must(main.Sync(t.Context(), list))(t)
		if got.Branch != "main/fork-2" || got.Known != c.i || must(main.Tip(t.Context()))(t) != tip {
			t.Errorf("%s: %+v", name, got)
		}
		again := must(main.Sync(t.Context(), list))(t)
		if len(again.Commits) != 0 || again.Branch != got.Branch || again.Tip != got.Tip || again.Known != len(list) {
			t.Errorf("%s, again: %+v", name, again)
		}
	}
}

func TestSyncForksAChangedPast(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	must(main.Sync(ctx, dialogue("Q1", "A1", "Q2", "A2")))(t)
	for _, step := range []struct{ on, want, list string }{
		{"main", "main/fork-2 2 2", "Q1 A1 Q2' A2'"},
		{"main", "main/fork-2 4 0", "Q1 A1 Q2' A2'"},
		{"main", "main/fork-2 4 1", "Q1 A1 Q2' A2' Q3'"},
		{"main/fork-2", "main/fork-2 5 1", "Q1 A1 Q2' A2' Q3' A3'"},
		{"main", "main 4 1", "Q1 A1 Q2 A2 Q3"},
		{"main/fork-2", "main 5 1", "Q1 A1 Q2 A2 Q3 A3"},
		{"main/fork-2", "main/fork-3 3 1", "Q1 A1 Q2' A2''"},
		{"main", "main/fork-4 0 1", "Q0"},
		{"main", "main 2 0", "Q1 A1"},
	} {
		got := must(repo.Branch(step.on).Sync(ctx, dialogue(strings.Fields(step.list)...)))(t)
		if have := fmt.Sprint(got.Branch, " ", got.Known, " ", len(got.Commits)); have != step.want {
			t.Errorf("%s on %s: %s, want %s", step.list, step.on, have, step.want)
		}
		var texts []string
		for _, m := range must(repo.Branch(got.Branch).Messages(ctx))(t) {
			texts = append(texts, m.Blocks[0].String())
		}
		if !strings.HasPrefix(strings.Join(texts, " "), step.list) {
			t.Errorf("%s on %s: %s has %v", step.list, step.on, got.Branch, texts)
		}
	}
}

// TestSyncForksBesideAnExistingName that a fork had its own from.
func TestSyncForksBesideAnExistingName(t *testing.T) {
	repo := open(t)
	fork := repo.Branch("main/fork-2")
	must(fork.Sync(t.Context(), dialogue("Q1")))(t)
	if got := must(fork.Sync(t.Context(), dialogue("Q2")))(t); got.Branch != "main/fork-3" {
		t.Errorf("%+v", got)
	}
}

// TestSyncContinuesAfterEdits: a client need not know what was done to a branch. A fork has
// the blocks as the client has them.
func TestSyncContinuesAfterEdits(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	first := must(main.Sync(ctx, dialogue("Q1", "A1", "Q2", "A2")))(t).Commits
	must(main.Edit(ctx, first[1].String(), "A1 edited", tract.EditOptions{}))(t)
	must(main.Annotate(ctx, first[0].String(), priority.Skip, ""))(t)
	must(main.Append(ctx, []content.Block{content.Note("for people")}, tract.AppendOptions{}))(t)
	prompt := must(repo.Compile(ctx, "main", tract.CompileOptions{}))(t).Messages
	for name, list := range map[string][]content.Message{
		"as it was": dialogue("Q1", "A1", "Q2", "A2"), "as it is": dialogue("Q1", "A1 edited", "Q2", "A2"), "the prompt": prompt,
	} {
		if got := must(main.Sync(ctx, list))(t); got.Branch != "main" || got.Known != len(list) || len(got.Commits) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := must(main.Sync(ctx, append(prompt, dialogue("Q3")...)))(t); got.Branch != "main" || len(got.Commits) != 1 {
		t.Errorf("after the prompt: %+v", got)
	}
	got := must(main.Sync(ctx, dialogue("Q1", "A1 edited", "Q2", "other")))(t)
	if have := saidOn(t, repo.Branch(got.Branch)); have != "u Q1 | a A1 edited | u Q2 | a other" || got.Known != 1 {
		t.Errorf("%+v: %s", got, have)
	}
	got = must(main.Sync(ctx, dialogue("Q1", "A1", "Q2", "another")))(t)
	if have := saidOn(t, repo.Branch(got.Branch)); have != "u Q1 | a A1 | u Q2 | a another" || got.Known != 3 {
		t.Errorf("%+v: %s", got, have)
	}
}

// TestSyncOfAMergedBranch forks before the merge what was changed in it.
func TestSyncOfAMergedBranch(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	must(main.Sync(ctx, dialogue("Q1", "A1")))(t)
	side := must(main.Fork(ctx, "side", "main"))(t)
	must(side.Append(ctx, []content.Block{content.User("S1"), content.Assistant("S2")}, tract.AppendOptions{}))(t)
	must(main.AppendUser(ctx, "Q2"))(t)
	must(main.Merge(ctx, "side", tract.MergeOptions{}))(t)
	list := must(main.Messages(ctx))(t)
	if have := transcript(list); have != "u Q1 | a A1 | u Q2 | u S1 | a S2" {
		t.Fatal(have)
	}
	if got := must(main.Sync(ctx, append(list[:5:5], dialogue("Q3")...)))(t); got.Known != 5 || len(got.Commits) != 1 {
		t.Errorf("%+v", got)
	}
	got := must(main.Sync(ctx, append(list[:4:4], say(content.RoleAssistant, content.Assistant("S2 changed")))))(t)
	if have := saidOn(t, repo.Branch(got.Branch)); have != "u Q1 | a A1 | u Q2 | u S1 | a S2 changed" || got.Known != 3 {
		t.Errorf("%+v: %s", got, have)
	}
}

func TestSyncComparesMaskedSecrets(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	list := dialogue("the key is AKIA"+"QWERTYUIOPASDFGH", "A1")
	must(main.Sync(ctx, list))(t)
	if have := saidOn(t, main); strings.Contains(have, "QWERTY") {
		t.Errorf("stored: %s", have)
	}
	if got := must(main.Sync(ctx, append(list, dialogue("Q2")...)))(t); got.Known != 2 || got.Branch != "main" {
		t.Errorf("%+v", got)
	}
}

func TestSyncRefusesInvalidLists(t *testing.T) {
	main := open(t).Branch("main")
	for want, list := range map[string][]content.Message{
		"message 2: a block of kind note": {dialogue("Q")[0], say(content.NoRole, content.Note("for people"))},
		"message 1: block 1":              {say(content.RoleUser, nil)},
	} {
		if _, err := main.Sync(t.Context(), list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSyncAtOnce has several clients that sync at once: each list is on a branch, once.
func TestSyncAtOnce(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	must(main.Sync(t.Context(), dialogue("Q1", "A1", "Q2")))(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			list := dialogue("Q1", "A1", fmt.Sprint("Q", n%3))
			got, err := main.Sync(t.Context(), list)
			if err != nil {
				t.Error(err)
				return
			}
			if have := saidOn(t, repo.Branch(got.Branch)); have != transcript(list) {
				t.Errorf("%s has %s", got.Branch, have)
			}
		})
	}
	all.Wait()
	for _, name := range []string{"main/fork-2", "main/fork-3"} {
		if saidOn(t, repo.Branch(name)) == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if have := saidOn(t, repo.Branch("main/fork-4")); have != "" {
		t.Errorf("a fork too many: %s", have)
	}
}

// TestSyncOfRandomLists syncs random lists that grow, shrink and change: the prompt equals the list
// each time.
func TestSyncOfRandomLists(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		repo, err := tract.Open(t.Context(), "mem:", tract.OpenOptions{})
		if err != nil {
			r.Fatal(err)
		}
		defer repo.Close()
		main := repo.Branch("main")
		for range rapid.IntRange(1, 6).Draw(r, "syncs") {
			list := dialogue(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, 5).Draw(r, "list")...)
			got, err := main.Sync(t.Context(), list)
			if err != nil {
				r.Fatal(err)
			}
			have, err := repo.Branch(got.Branch).Messages(t.Context())
			if err != nil || len(have) < len(list) || transcript(have[:len(list)]) != transcript(list) {
				r.Fatalf("%s has %s, want %s: %v", got.Branch, transcript(have), transcript(list), err)
			}
			if len(got.Commits) != len(list)-got.Known {
				r.Fatalf("%+v of %d messages", got, len(list))
			}
			again, err := main.Sync(t.Context(), list)
			if err != nil || len(again.Commits) != 0 || again.Known != len(list) {
				r.Fatalf("again: %+v, %v", again, err)
			}
		}
	})
}

// TestSyncAfterCompress goes on from a prompt with a summary.
func TestSyncAfterCompress(t *testing.T) {
	repo := open(t)
	ctx, main := t.Context(), repo.Branch("main")
	first := must(main.Sync(ctx, dialogue("Q1", "A1", "Q2", "A2")))(t).Commits
	must(summaryID(main.Compress(ctx, first[0].String()+".."+first[1].String(), tract.CompressOptions{Text: "They greeted."})))(t)
	prompt := must(repo.Compile(ctx, "main", tract.CompileOptions{}))(t).Messages
	for range 2 {
		got := must(main.Sync(ctx, append(prompt[:len(prompt):len(prompt)], dialogue("Q3")...)))(t)
		if got.Branch != "main" || got.Known < len(prompt) {
			t.Errorf("%+v", got)
		}
	}
	if have := saidOn(t, main); have != "u Q1 | a A1 | u Q2 | a A2 | u Q3" {
		t.Error(have)
	}
}
