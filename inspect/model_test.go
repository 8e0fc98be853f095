package inspect_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// model is a client that answers from a script. It has no wire format.
type model struct {
	answers [][]content.Block
	between func() // called while the network works
}

func says(blocks ...content.Block) *model { return &model{answers: [][]content.Block{blocks}} }

func (m *model) then(blocks ...content.Block) *model {
	m.answers = append(m.answers, blocks)
	return m
}

func (m *model) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	blocks := m.answers[0]
	m.answers = m.answers[1:]
	if m.between != nil {
		m.between()
	}
	return &llm.Response{
		Blocks: blocks, Head: llm.Head{ID: "resp_1", Model: "test-model", Finish: "stop", Usage: content.Usage{Input: 10, Output: 5, Reasoning: 2}},
	}, nil
}

// speaking is a model with a wire format.
type speaking struct {
	*model
	plainTarget
}

// plainTarget is a wire format of its own: lines of "kind: text".
type plainTarget struct{ wantsTurn bool }

func (plainTarget) Address() llm.Address {
	return llm.Address{Provider: "plain", Dialect: "lines", Model: "m1", Endpoint: "localhost", Encoder: 1}
}
func (p plainTarget) NeedsReasoningInToolLoop() bool { return p.wantsTurn }

func (plainTarget) Encode(req *llm.Request) ([]byte, error) {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, block := range m.Blocks {
			fmt.Fprintf(&b, "%s: %s\n", block.Kind(), block)
		}
	}
	return []byte(b.String()), nil
}

func (plainTarget) Decode(io.Reader) iter.Seq2[llm.Event, error] { panic("nothing is decoded here") }

// lines is the Targets of plainTarget.
func lines(*compile.Manifest) (llm.Target, error) { return plainTarget{}, nil }

func user(text string) content.Block      { return content.User(text) }
func assistant(text string) content.Block { return content.Assistant(text) }
func think(text string) content.Block     { return content.Reasoning{Text: text} }
func result(id string) content.Block      { return content.ToolResult{CallID: id, Text: "4 degrees"} }

func call(id string) content.Block {
	return content.ToolCall{CallID: id, Name: "weather", Arguments: `{"city":"Oslo"}`}
}

func open(t *testing.T, o ...tract.OpenOptions) *tract.Repo {
	t.Helper()
	repo := must(tract.Open(t.Context(), "mem:", opt(o)))(t)
	t.Cleanup(func() { _ = repo.Close() })
	return repo
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
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
