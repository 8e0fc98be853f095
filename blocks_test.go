package tract_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// oddBlocks is what Go takes for a block and content.CheckBlock refuses.
func oddBlocks() map[string]content.Block {
	text := content.User("the key is " + oddSecret)
	call, result := content.ToolCall{CallID: "c1", Name: "search"}, content.ToolResult{CallID: "c1"}
	media, thought, native := content.Media{Of: content.KindImage, Data: "x"}, content.Reasoning{Text: "hm"}, content.Native{JSON: "{}"}
	return map[string]content.Block{
		"nil": nil, "nil pointer": (*content.Text)(nil), "embedded": struct{ content.Text }{text},
		"text": &text, "call": &call, "result": &result, "media": &media, "thought": &thought, "native": &native,
		"a text of the kind of a call": content.Text{Of: content.KindToolCall, Text: "x"}, "a text of no kind": content.Text{Text: "x"},
		"media of the kind of a text": content.Media{Of: content.KindUser, Data: "x"},
		"role":                        content.Text{Wire: content.Form{Role: 99}.Wire(), Of: content.KindUser, Text: "x"},
		"seal":                        content.Text{Wire: content.Form{Seal: content.Seal{Type: 99, Data: "x"}}.Wire(), Of: content.KindUser, Text: "x"},
	}
}

const oddSecret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// blockClient is a client whose responses have any blocks, streamed or not.
type blockClient struct {
	blocks []content.Block
	opens  []content.Block // what ExtractReasoning gives
}

func (c *blockClient) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Head: llm.Head{Model: "m"}, Blocks: c.blocks}, nil
}

func (c *blockClient) ExtractReasoning(*llm.Response) []content.Block { return c.opens }

// blockStream is blockClient as a target that streams.
type blockStream struct{ blockClient }

func (c *blockStream) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return c.Decode(nil)
}

func (c *blockStream) Address() llm.Address {
	return llm.Address{Provider: "p", Dialect: "d", Model: "m"}
}
func (c *blockStream) NeedsReasoningInToolLoop() bool      { return false }
func (c *blockStream) Encode(*llm.Request) ([]byte, error) { return []byte("{}"), nil }

func (c *blockStream) Decode(io.Reader) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for i, b := range c.blocks {
			if !yield(llm.Event{Type: llm.BlockDone, Index: i, Block: b}, nil) {
				return
			}
		}
	}
}

// wantRefused requires an error that says what is wrong with a block.
func wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "block of") && !strings.Contains(err.Error(), "no block") && !strings.Contains(err.Error(), "block with") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestInvalidBlocksAreRefused passes invalid blocks to every function that takes blocks: nothing of
// them is stored.
func TestInvalidBlocksAreRefused(t *testing.T) {
	repo, dir := onDisk(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "all"}})
	ctx, main := t.Context(), repo.Branch("main")
	must(main.AppendUser(ctx, "Hello"))(t)
	tip := must(main.Tip(ctx))(t)
	anthropic := must(providers.Open("anthropic", providers.Config{Model: "m", APIKey: "k"}))(t)
	for name, odd := range oddBlocks() {
		blocks := []content.Block{content.User("fine"), odd}
		_, err := main.Append(ctx, blocks, tract.AppendOptions{})
		wantRefused(t, name+": append", err)
		_, err = repo.Branch("other").Record(ctx, tract.Recording{Messages: []content.Message{{Role: content.RoleUser, Blocks: blocks}}}, tract.AppendOptions{})
		wantRefused(t, name+": record", err)
		_, err = main.AppendResponse(ctx, &llm.Response{Blocks: blocks}, tract.AppendOptions{})
		wantRefused(t, name+": append reply", err)
		log := tract.ImportedMessage{Branch: "log", Parts: []tract.ImportedPart{{ID: "1", Block: odd}}}
		_, err = repo.Import(ctx, inOrder(log), tract.ImportOptions{})
		wantRefused(t, name+": import", err)
		_, err = repo.Import(ctx, inOrder(log), tract.ImportOptions{DryRun: true})
		wantRefused(t, name+": plan of an import", err)
		_, err = repo.Request(ctx, "main", anthropic, tract.RequestOptions{UserMessage: []content.Block{odd}})
		wantRefused(t, name+": request", err)
		_, err = anthropic.Encode(&llm.Request{Messages: []content.Message{{Role: content.RoleUser, Blocks: blocks}}})
		wantRefused(t, name+": encode", err)
		_, err = providers.Replay("messages", "anthropic", "m", blocks)
		wantRefused(t, name+": replay", err)
		if odd != nil {
			_, _, err = commit.Write(nil, commit.Draft{Block: odd})
			wantRefused(t, name+": write", err)
		}
		_, err = summaryID(main.Compress(ctx, tip.String(), tract.CompressOptions{Client: &blockClient{blocks: blocks}}))
		wantRefused(t, name+": summary", err)
	}
	if now := must(main.Tip(ctx))(t); now != tip {
		t.Errorf("main moved to %s", now)
	}
	wantNoWord(t, dir, 0, oddSecret)
}

// TestInvalidBlocksOfAResponse checks that the valid blocks of a response are kept, and that the
// error states why they are not on the branch.
func TestInvalidBlocksOfAResponse(t *testing.T) {
	repo, dir := onDisk(t, tract.OpenOptions{Settings: map[string]string{"secrets.mask": "all"}})
	ctx, main := t.Context(), repo.Branch("main")
	must(main.AppendUser(ctx, "Hello"))(t)
	for name, odd := range oddBlocks() {
		blocks := []content.Block{content.Assistant("paid for"), odd}
		whole, streams := &blockClient{blocks: blocks}, &blockStream{blockClient{blocks: blocks}}
		asks := map[string]func() (*tract.Response, error){
			"generate": func() (*tract.Response, error) { return main.Generate(ctx, whole, tract.AskOptions{}) },
			"extract": func() (*tract.Response, error) {
				return main.Generate(ctx, &blockClient{blocks: blocks[:1], opens: blocks}, tract.AskOptions{})
			},
		}
		if odd != nil { // an event without a block says nothing
			asks["stream"] = func() (*tract.Response, error) { return main.Generate(ctx, streams, tract.AskOptions{}) }
			asks["accept"] = func() (*tract.Response, error) {
				return main.Accept(ctx, must(main.Prepare(ctx, streams, tract.PrepareOptions{}))(t), strings.NewReader(""))
			}
		}
		for how, ask := range asks {
			_, err := ask()
			wantRefused(t, name+": "+how, err)
			var broken *tract.IncompleteError
			if !errors.As(err, &broken) || broken.Response.Text != "paid for" {
				t.Errorf("%s: %s: %v", name, how, err)
				continue
			}
			kept := must(repo.Show(ctx, broken.Rescued))(t)
			if kept.Block.String() != "paid for" {
				t.Errorf("%s: %s: %s holds %q", name, how, broken.Rescued, kept.Block)
			}
		}
		_, err := main.Generate(ctx, &blockClient{blocks: blocks[1:]}, tract.AskOptions{})
		wantRefused(t, name+": alone", err)
	}
	wantNoWord(t, dir, 0, oddSecret)
}

// TestTextBeforeAnEventWithoutABlock checks that such a text is part of the response.
func TestTextBeforeAnEventWithoutABlock(t *testing.T) {
	var a llm.Accumulator
	a.Add(llm.Event{Type: llm.TextDelta, Text: "paid for"})
	a.Add(llm.Event{Type: llm.BlockDone})
	if got := a.Response(true).Text(); got != "paid for" {
		t.Errorf("have %q", got)
	}
}
