package tract_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// model is a client that answers from a script. It is a plain client: it can
// neither stream nor find reasoning, and has no wire format.
type model struct {
	mu      sync.Mutex
	answers []answer
	asked   []*llm.Request
	between func() // called while the network works
}

type answer struct {
	blocks []content.Block
	err    error
	finish string
}

func says(blocks ...content.Block) *model { return &model{answers: []answer{{blocks: blocks}}} }

func (m *model) then(blocks ...content.Block) *model {
	m.answers = append(m.answers, answer{blocks: blocks})
	return m
}

func (m *model) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	if len(m.answers) == 0 {
		m.mu.Unlock()
		return nil, errors.New("the script has ended")
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	m.mu.Unlock()
	if m.between != nil {
		m.between()
	}
	if a.blocks == nil && a.err != nil {
		return nil, a.err
	}
	finish := a.finish
	if finish == "" {
		finish = "stop"
	}
	return &llm.Response{
		Blocks: a.blocks, Head: llm.Head{ID: "resp_1", Model: "test-model", Finish: finish, Usage: content.Usage{Input: 10, Output: 5, Reasoning: 2}},
	}, a.err
}

// extracting is a model whose thoughts are in its text until somebody asks.
type extracting struct{ *model }

func (extracting) ExtractReasoning(r *llm.Response) []content.Block {
	thought, text, ok := strings.Cut(r.Text(), " => ")
	if !ok {
		return nil
	}
	return []content.Block{content.Reasoning{Format: content.FormatRaw, Source: "arrow", Text: thought}, content.Assistant(text)}
}

// streaming is a model that gives its answers as they come, letter by letter.
type streaming struct{ *model }

func (m streaming) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		r, err := m.Generate(ctx, req)
		if r == nil {
			yield(llm.Event{}, err)
			return
		}
		for i, b := range r.Blocks {
			kind := llm.TextDelta
			if b.Kind() == content.KindReasoning {
				kind = llm.ReasoningDelta
			}
			for _, letter := range b.String() {
				if ctx.Err() != nil {
					yield(llm.Event{}, ctx.Err())
					return
				}
				if !yield(llm.Event{Type: kind, Index: i, Text: string(letter)}, nil) {
					return
				}
			}
			if last := i == len(r.Blocks)-1; err != nil && last {
				yield(llm.Event{}, err)
				return
			}
			if !yield(llm.Event{Type: llm.BlockDone, Index: i, Block: b}, nil) {
				return
			}
		}
		yield(llm.Event{Type: llm.HeadDone, Head: r.Head}, nil)
	}
}

// plainTarget is a wire format of its own: lines of "kind text".
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

func (plainTarget) Decode(body io.Reader) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		b, err := io.ReadAll(body)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			kind, text, _ := strings.Cut(line, ": ")
			var block content.Block = content.Assistant(text)
			switch kind {
			case "reasoning":
				block = content.Reasoning{Format: content.FormatParsed, Text: text}
			case "cut":
				yield(llm.Event{Type: llm.TextDelta, Index: i, Text: text}, nil)
				yield(llm.Event{}, llm.ErrTruncated)
				return
			}
			if !yield(llm.Event{Type: llm.BlockDone, Index: i, Block: block}, nil) {
				return
			}
		}
	}
}

func think(text string) content.Block {
	return content.Reasoning{Format: content.FormatAnthropic, Source: "thinking", Text: text, Wire: content.Form{
		Dialect: "messages", Seal: content.Seal{Type: content.Signature, Data: "sig-" + text, Minted: "messages/m"},
	}.Wire()}
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

// kinds tells the history of a revision, oldest first.
func kinds(t *testing.T, repo *tract.Repo, rev string) string {
	t.Helper()
	var list []string
	for c, err := range repo.Log(t.Context(), rev, tract.LogOptions{}) {
		if errors.Is(err, objects.ErrNotFound) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		word := c.Kind.String()
		if c.Op.String() != "append" {
			word = c.Op.String()
		}
		list = append([]string{word}, list...)
	}
	return strings.Join(list, " ")
}

// sent tells what a revision compiles to.
func sent(t *testing.T, repo *tract.Repo, rev string, o ...tract.CompileOptions) string {
	t.Helper()
	p, err := repo.Compile(t.Context(), rev, opt(o))
	if err != nil {
		t.Fatal(err)
	}
	return messages(p.Messages)
}

func messages(list []content.Message) string {
	var words []string
	for _, m := range list {
		for _, b := range m.Blocks {
			words = append(words, b.Kind().String()+":"+b.String())
		}
	}
	return strings.Join(words, " | ")
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
