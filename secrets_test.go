package tract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// plain is a thought without a seal.
func plain(text string) content.Reasoning {
	return content.Reasoning{Format: content.FormatParsed, Source: "reasoning_content", Text: text}
}

// inJSON is a text as a member of an object.
func inJSON(t *testing.T, text string) string {
	t.Helper()
	return string(must(json.Marshal(map[string]string{"text": text}))(t))
}

// leaked is which secrets stand in any file of a store, or in any of its objects,
// however an engine writes them.
func leaked(t *testing.T, dir string, repo *tract.Repo, planted []secretstest.Planted) (rules []string) {
	t.Helper()
	var all [][]byte
	auditor, ok := objects.As[objects.Maintainer](repo.Store())
	if !ok {
		t.Fatal("the store cannot be audited")
	}
	if err := auditor.Audit(t.Context(), objects.Audit{Objects: func(list []objects.Object) error {
		for _, o := range list {
			all = append(all, o.Clone().Data)
		}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range planted {
		quoted := inJSON(t, p.Secret)
		quoted = quoted[len(`{"text":"`) : len(quoted)-len(`"}`)]
		for _, b := range all {
			if bytes.Contains(b, []byte(p.Secret)) || bytes.Contains(b, []byte(quoted)) {
				rules = append(rules, p.Rule)
				break
			}
		}
	}
	return rules
}

// tellEverything puts a text wherever words go: into messages, thoughts, calls and
// their results, labels, reasons, edits, summaries, tools, a reply that lands and one
// that breaks.
func tellEverything(t *testing.T, repo *tract.Repo, branch, text string) {
	t.Helper()
	b, ctx := repo.Branch(branch), t.Context()
	must(onlyID(b.Append(ctx, []content.Block{content.System("Keep it: " + text)}, tract.AppendOptions{})))(t)
	first := must(onlyID(b.Append(ctx, []content.Block{content.User(text)}, tract.AppendOptions{Label: text, Meta: map[string]string{"note": text}})))(t)
	must(b.Append(ctx, []content.Block{content.Media{Of: content.KindFile, MediaType: "text/plain", Name: "a.env", Data: text}}, tract.AppendOptions{}))(t)
	reply := must(b.Generate(ctx, says(
		plain(text), content.Text{Of: content.KindAssistant, Text: text, Wire: content.Form{Extra: []byte(inJSON(t, text))}.Wire()},
		content.ToolCall{CallID: "c1", Name: "run", Arguments: inJSON(t, text)},
	), tract.AskOptions{Tools: []llm.Tool{{Name: "run", Description: text, Schema: []byte(inJSON(t, text))}}}))(t)
	if reply.Reasoning != text || reply.Text != text || reply.ToolCalls[0].Arguments != inJSON(t, text) {
		t.Error("the response in hand does not have the true bytes")
	}
	must(b.Append(ctx, []content.Block{content.ToolResult{CallID: "c1", Text: text}}, tract.AppendOptions{}))(t)
	must(b.Append(ctx, []content.Block{content.Native{Wire: content.Form{Dialect: "messages"}.Wire(), JSON: inJSON(t, text)}, content.Note("noted: " + text)}, tract.AppendOptions{}))(t)
	must(b.Edit(ctx, first.String(), "no: "+text, tract.EditOptions{}))(t)
	must(b.Annotate(ctx, first.String(), priority.Pinned, text))(t)
	must(b.AppendUser(ctx, "and now?"))(t)
	m := streaming{says()}
	m.answers = []answer{{blocks: []content.Block{plain(text), content.Assistant(text)}, err: llm.ErrTruncated}}
	var broken *tract.IncompleteError
	if _, err := b.Generate(ctx, m, tract.AskOptions{}); !errors.As(err, &broken) || !strings.HasPrefix(text, broken.Response.Reasoning) {
		t.Fatalf("%v", err)
	}
	must(b.TakeRescue(ctx, broken.Rescued, tract.RescueOptions{}))(t)
	must(b.AppendUser(ctx, "go on"))(t)
	must(summaryID(b.Compress(ctx, "", tract.CompressOptions{Text: "in short: " + text})))(t)
	must(repo.Branch(branch+"-pick").CherryPick(ctx, []string{first.String()}))(t)
}

// TestSecretsAreMaskedEverywhere plants a secret of every known form wherever words
// go, with secrets.mask=all, and looks for them in every byte of the store.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	for mode, want := range map[string]bool{"all": false, "off": true} { // off shows that the test can fail
		dir := t.TempDir()
		repo := must(tract.Open(t.Context(), dir, tract.OpenOptions{Create: true, Settings: map[string]string{"secrets.mask": mode}}))(t)
		planted := secretstest.Plant(11)
		for i, p := range planted {
			tellEverything(t, repo, "b"+strconv.Itoa(i), p.Text())
			if err := repo.Branch("b"+strconv.Itoa(i)).Describe(t.Context(), "about "+p.Text()); err != nil {
				t.Fatal(err)
			}
		}
		found := leaked(t, dir, repo, planted)
		if want && len(found) != len(planted) || !want && len(found) > 0 {
			t.Errorf("%s: %d of %d secrets are in the store: %v", mode, len(found), len(planted), found)
		}
		if err := repo.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTracesAreMaskedByDefault: thoughts without a seal, of a person, of a reply and
// of one that broke off, what an import brings and replies that are added by hand.
func TestTracesAreMaskedByDefault(t *testing.T) {
	dir := t.TempDir()
	repo := must(tract.Open(t.Context(), dir, tract.OpenOptions{Create: true}))(t)
	defer repo.Close()
	planted := secretstest.Plant(12)
	for i, p := range planted {
		b, text := repo.Branch("b"+strconv.Itoa(i)), p.Text()
		must(b.AppendUser(t.Context(), "hello"))(t)
		must(onlyID(b.Append(t.Context(), []content.Block{content.Reasoning{Format: content.FormatParsed, Text: text}}, tract.AppendOptions{})))(t)
		must(b.Generate(t.Context(), says(content.Reasoning{Format: content.FormatResponses, Parts: []string{"so", text}}, content.Assistant("hm")), tract.AskOptions{}))(t)
		m := streaming{says()}
		m.answers = []answer{{blocks: []content.Block{plain(text), plain("or " + text)}, err: llm.ErrTruncated}}
		if _, err := b.Generate(t.Context(), m, tract.AskOptions{}); !errors.As(err, new(*tract.IncompleteError)) {
			t.Fatal(err)
		}
		must(b.AppendResponse(t.Context(), &llm.Response{Head: llm.Head{ID: "r1", Finish: "error: " + text}, Blocks: []content.Block{content.Assistant(text), content.ToolCall{CallID: "c", Name: "run", Arguments: inJSON(t, text)}}}, tract.AppendOptions{}))(t)
		list := must(repo.Import(t.Context(), brought("s"+strconv.Itoa(i), text), tract.ImportOptions{}))(t)
		if len(list) != 1 || list[0].Added != 3 {
			t.Errorf("imported %+v", list)
		}
		if again := must(repo.Import(t.Context(), brought("s"+strconv.Itoa(i), text), tract.ImportOptions{}))(t); again[0].Added != 0 {
			t.Errorf("a second import adds %d blocks", again[0].Added)
		}
	}
	if found := leaked(t, dir, repo, planted); len(found) > 0 {
		t.Errorf("%d of %d secrets are in the store: %v", len(found), len(planted), found)
	}
}

// brought is a session of another program that has a text in everything.
func brought(branch, text string) iter.Seq2[tract.ImportedMessage, error] {
	return func(yield func(tract.ImportedMessage, error) bool) {
		yield(tract.ImportedMessage{
			Branch: branch, Origin: commit.Origin{Importer: "test", Original: map[string]string{"title": text}, Usage: content.Usage{Raw: []byte(`{"total": 1}`)}},
			Label: commit.Label{Text: text},
			Parts: []tract.ImportedPart{{ID: "1", Block: content.User(text)}, {ID: "2", Block: plain(text)}, {ID: "3", Block: content.ToolResult{CallID: "c", Text: text}}},
		}, nil)
	}
}

// TestUnmaskedSecretsAreReported checks that by default a message is stored unchanged and its
// secrets are reported; reasoning is masked, except under a seal.
func TestUnmaskedSecretsAreReported(t *testing.T) {
	key := secretstest.Plant(13)[2].Secret
	var told []tract.Secret
	repo := open(t, tract.OpenOptions{OnSecrets: func(found []tract.Secret) { told = append(told, found...) }})
	b := repo.Branch("main")
	must(b.AppendUser(t.Context(), "my key is "+key))(t)
	must(b.Generate(t.Context(), says(think("they gave me "+key), plain("again "+key), content.Assistant("Thanks.")), tract.AskOptions{}))(t)
	must(b.AppendUser(t.Context(), "nothing here"))(t)
	want := []tract.Secret{
		{Rule: "anthropic", Kind: content.KindUser},
		{Rule: "anthropic", Kind: content.KindReasoning, Sealed: true},
		{Rule: "anthropic", Kind: content.KindReasoning, Masked: true},
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %+v\nwant %+v", told, want)
	}
	p := must(repo.Compile(t.Context(), "main", tract.CompileOptions{IncludeReasoning: true}))(t)
	got := messages(p.Messages)
	if !strings.Contains(got, "user:my key is "+key) || !strings.Contains(got, "they gave me "+key) || !strings.Contains(got, "again "+secrets.Mask(key)) {
		t.Error(got)
	}
}

// TestAMaskedToolResultIsWhatTheModelSees: with secrets.mask=all the next request has
// the mask, in messages, results and the definitions of tools, and it can be verified.
func TestAMaskedToolResultIsWhatTheModelSees(t *testing.T) {
	key := secretstest.Plant(14)[15].Secret
	repo := open(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "all"}})
	b := repo.Branch("main")
	m := says(content.ToolCall{CallID: "c1", Name: "cat", Arguments: `{"path":".env"}`}).then(content.Assistant("I see a mask."))
	tools := []llm.Tool{{Name: "cat", Description: "uses " + key}}
	must(b.Ask(t.Context(), m, "What is in .env?", tract.AskOptions{Tools: tools}))(t)
	must(b.Append(t.Context(), []content.Block{content.ToolResult{CallID: "c1", Text: "TOKEN=" + key}}, tract.AppendOptions{}))(t)
	must(b.Generate(t.Context(), m, tract.AskOptions{Tools: tools}))(t)
	last := m.asked[len(m.asked)-1]
	if got := messages(last.Messages); !strings.Contains(got, "TOKEN="+secrets.Mask(key)) || strings.Contains(got, key) {
		t.Error(got)
	}
	if got := last.Tools[0].Description; got != "uses "+secrets.Mask(key) {
		t.Error(got)
	}
}

// TestMaskedBlocksKeepTheirForm: what is not words stays, JSON stays JSON, and only a
// block with secrets loses its seal.
func TestMaskedBlocksKeepTheirForm(t *testing.T) {
	key := secretstest.Plant(15)[15].Secret
	sealed := think("see " + key).(content.Reasoning)
	masked, rules := history.MaskBlock(sealed)
	if r := masked.(content.Reasoning); !slices.Equal(rules, []string{"github"}) || r.Text != "see "+secrets.Mask(key) || !r.Form().Seal.IsZero() || r.Format != sealed.Format {
		t.Errorf("%v %+v", rules, r)
	}
	for _, same := range []content.Block{think("hm"), call("c1"), result("c1"), content.System("Be brief.")} {
		if b, rules := history.MaskBlock(same); len(rules) > 0 || !bytes.Equal(content.Encode(b), content.Encode(same)) {
			t.Errorf("%v: %+v", rules, b)
		}
	}
	masked, _ = history.MaskBlock(content.ToolCall{CallID: "c1", Name: "run", Arguments: `{"env":{"token":"` + key + `"},"n":1.50}`})
	if c := masked.(content.ToolCall); c.CallID != "c1" || c.Arguments != `{"env":{"token":"`+secrets.Mask(key)+`"},"n":1.50}` {
		t.Errorf("%+v", c)
	}
}

// BenchmarkAppend2KB appends a block of 2 KB without secrets, masked and not, to a
// store on disk and to one in memory.
func BenchmarkAppend2KB(b *testing.B) {
	text := strings.Repeat("The quick brown fox asks the task runner: is it a secret? He said \"yes\".\nfunc main() { return token }\n", 30)[:2048]
	for _, where := range []string{"mem", "disk"} {
		for _, mode := range []string{"off", "traces", "all"} {
			b.Run(where+"/"+mode, func(b *testing.B) {
				url := "mem:"
				if where == "disk" {
					url = b.TempDir()
				}
				repo, err := tract.Open(b.Context(), url, tract.OpenOptions{Create: true, Settings: map[string]string{"secrets.mask": mode}})
				if err != nil {
					b.Fatal(err)
				}
				defer repo.Close()
				main := repo.Branch("main")
				for b.Loop() {
					if _, err := main.AppendUser(b.Context(), text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
