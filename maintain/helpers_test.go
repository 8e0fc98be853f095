package maintain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/secrets/secretstest"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// sent is what a revision compiles to.
func sent(t *testing.T, repo *tract.Repo, rev string) string {
	t.Helper()
	var list []string
	for _, m := range must(repo.Compile(t.Context(), rev, tract.CompileOptions{}))(t).Messages {
		for _, b := range m.Blocks {
			list = append(list, b.Kind().String()+":"+b.String())
		}
	}
	return strings.Join(list, " | ")
}

// model is a client that gives the answers of a script.
type model struct{ answers [][]content.Block }

func says(blocks ...content.Block) *model { return &model{[][]content.Block{blocks}} }

func (m *model) then(blocks ...content.Block) *model {
	m.answers = append(m.answers, blocks)
	return m
}

func (m *model) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	if len(m.answers) == 0 {
		return nil, errors.New("the script has ended")
	}
	blocks := m.answers[0]
	m.answers = m.answers[1:]
	return &llm.Response{
		Blocks: blocks, Head: llm.Head{ID: "resp_1", Model: "test-model", Finish: "stop", Usage: content.Usage{Input: 10, Output: 5, Reasoning: 2}},
	}, nil
}

// think is reasoning with a seal, and plain without.
func think(text string) content.Block {
	return content.Reasoning{Format: content.FormatAnthropic, Source: "thinking", Text: text, Wire: content.Form{
		Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: "sig-" + text, Minted: "messages/m"},
	}.Wire()}
}

func plain(text string) content.Reasoning {
	return content.Reasoning{Format: content.FormatParsed, Source: "reasoning_content", Text: text}
}

func call(id string) content.Block {
	return content.ToolCall{CallID: id, Name: "weather", Arguments: `{"city":"Oslo"}`}
}

func result(id string) content.Block { return content.ToolResult{CallID: id, Text: "4 degrees"} }

func open(t *testing.T, o ...tract.OpenOptions) *tract.Repo {
	t.Helper()
	repo, err := tract.Open(t.Context(), "mem:", opt(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	return repo
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

// tellEverything puts a text wherever text is stored: into messages, reasoning, tool calls
// and their results, labels, annotations, edits, summaries, the definitions of tools.
func tellEverything(t *testing.T, repo *tract.Repo, branch, text string) {
	t.Helper()
	b, ctx := repo.Branch(branch), t.Context()
	must(onlyID(b.Append(ctx, []content.Block{content.System("Keep it: " + text)}, tract.AppendOptions{})))(t)
	first := must(onlyID(b.Append(ctx, []content.Block{content.User(text)}, tract.AppendOptions{Label: text, Meta: map[string]string{"note": text}})))(t)
	must(b.Append(ctx, []content.Block{content.Media{Of: content.KindFile, MediaType: "text/plain", Name: "a.env", Data: text}}, tract.AppendOptions{}))(t)
	must(b.Generate(ctx, says(
		plain(text), content.Text{Of: content.KindAssistant, Text: text, Wire: content.Form{Extra: []byte(inJSON(t, text))}.Wire()},
		content.ToolCall{CallID: "c1", Name: "run", Arguments: inJSON(t, text)},
	), tract.AskOptions{Tools: []llm.Tool{{Name: "run", Description: text, Schema: []byte(inJSON(t, text))}}}))(t)
	must(b.Append(ctx, []content.Block{content.ToolResult{CallID: "c1", Text: text}}, tract.AppendOptions{}))(t)
	must(b.Append(ctx, []content.Block{content.Native{Wire: content.Form{Dialect: "messages"}.Wire(), JSON: inJSON(t, text)}, content.Note("noted: " + text)}, tract.AppendOptions{}))(t)
	must(b.Edit(ctx, first.String(), "no: "+text, tract.EditOptions{}))(t)
	must(b.Annotate(ctx, first.String(), priority.Pinned, text))(t)
	must(b.AppendUser(ctx, "and now?"))(t)
	must(b.AppendUser(ctx, "go on"))(t)
	must(summaryID(b.Compress(ctx, "", tract.CompressOptions{Text: "in short: " + text})))(t)
	must(repo.Branch(branch+"-pick").CherryPick(ctx, []string{first.String()}))(t)
}

// plainTarget is a wire format whose response is one text.
type plainTarget struct{}

func (plainTarget) Address() llm.Address {
	return llm.Address{Provider: "plain", Dialect: "text", Model: "m1", Endpoint: "localhost", Encoder: 1}
}
func (plainTarget) NeedsReasoningInToolLoop() bool      { return false }
func (plainTarget) Encode(*llm.Request) ([]byte, error) { return []byte("{}"), nil }

func (plainTarget) Decode(body io.Reader) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		b, err := io.ReadAll(body)
		yield(llm.Event{Type: llm.BlockDone, Block: content.Assistant(string(b))}, err)
	}
}

// opt is options that may be left out.
func opt[T any](o []T) (v T) {
	if len(o) > 0 {
		v = o[0]
	}
	return v
}

// onlyID is the id of an append of one block.
func onlyID(ids []objects.ID, err error) (objects.ID, error) {
	if err != nil {
		return objects.ID{}, err
	}
	return ids[0], nil
}

// summaryID is the id of a summary.
func summaryID(s *tract.Summary, err error) (objects.ID, error) {
	if err != nil {
		return objects.ID{}, err
	}
	return s.ID, nil
}

// description is what the list of branches says of one.
func description(t *testing.T, repo *tract.Repo, branch string) string {
	t.Helper()
	for info, err := range repo.Refs(t.Context(), tract.RefQuery{Prefix: branch, Limit: 1, Descriptions: true}) {
		if err != nil || info.Name != branch {
			t.Fatal(info, err)
		}
		return info.Description
	}
	return ""
}
