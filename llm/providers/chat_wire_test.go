package providers

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// TestChatReadsRecordings holds the decoder to the answer key.
func TestChatReadsRecordings(t *testing.T) {
	for _, r := range recorded(t, "chat") {
		t.Run(r.File, func(t *testing.T) {
			reply, _, err := r.read(bytes.NewReader(r.body))
			var api *llm.APIError
			switch {
			case r.Expected.Error != nil:
				if !errors.As(err, &api) || api.Message != r.Expected.Error.Message || len(api.Raw) == 0 {
					t.Errorf("error %v, want %q", err, r.Expected.Error.Message)
				}
			case r.Expected.Finish == nil:
				if !errors.Is(err, llm.ErrTruncated) || !reply.Incomplete {
					t.Errorf("a stream that breaks off ends with %v", err)
				}
			case err != nil:
				t.Fatal(err)
			}
			r.checkChatBlocks(t, reply)
			r.checkChatReasoning(t, reply)
			r.checkChatCalls(t, reply)
			r.checkHead(t, reply)
		})
	}
}

func (r *recording) checkChatBlocks(t *testing.T, reply *llm.Response) {
	t.Helper()
	text := ""
	var kinds []string
	for _, b := range reply.Blocks {
		kind := b.Kind().String()
		switch b := b.(type) {
		case content.Text:
			if kind = "refusal"; b.Form().Type != "refusal" {
				kind, text = "text", text+b.Text
			}
		case content.ToolCall:
			if kind = "tool_call"; b.Server {
				kind = "server_tool_call"
			}
		case content.ToolResult:
			kind = "server_tool_result"
		case content.Native:
			kind = "other:" + b.Form().Type
		}
		kinds = append(kinds, kind)
		if record := content.Encode(b); b.Form().Dialect != "chat" {
			t.Errorf("%q has no dialect", record)
		}
	}
	if withoutSpace(text) != withoutSpace(r.Expected.Text) {
		t.Errorf("text %q, want %q", text, r.Expected.Text)
	}
	want := r.Expected.Blocks
	if r.Provider == "avian" && slices.Contains(want, "tool_call") {
		want = []string{"reasoning", "tool_call"} // its texts are one blank each
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("blocks %v, want %v", kinds, want)
	}
}

func (r *recording) checkChatReasoning(t *testing.T, reply *llm.Response) {
	t.Helper()
	var thoughts []content.Reasoning
	for _, b := range reply.Blocks {
		if th, ok := b.(content.Reasoning); ok {
			thoughts = append(thoughts, th)
		}
	}
	if len(thoughts) != len(r.Expected.Reasoning) {
		t.Fatalf("%d thoughts, want %d", len(thoughts), len(r.Expected.Reasoning))
	}
	for i, want := range r.Expected.Reasoning {
		th := thoughts[i]
		text := th.Text
		if want.Form == "tags" {
			text, want.Source = strings.TrimSpace(text), "content"
			want.Text = strings.TrimSpace(want.Text)
		}
		if text != want.Text || th.Form().Seal.Data != want.Signature+want.Encrypted || th.Source != want.Source || th.Form().ID != want.ID {
			t.Errorf("thought %d: %+v, want %+v", i, th, want)
		}
		if sealed := th.Form().Seal.Data != ""; sealed != (th.Form().Seal.Type != content.NoSeal) || sealed && th.Form().Seal.Minted != "chat/"+r.Model {
			t.Errorf("thought %d: seal %+v", i, th.Form().Seal)
		}
		if want.Signature != "" && th.Form().Seal.Type != content.Signature {
			t.Errorf("thought %d is sealed by %s", i, th.Form().Seal.Type)
		}
	}
}

func (r *recording) checkChatCalls(t *testing.T, reply *llm.Response) {
	t.Helper()
	owned, _ := content.Attribute(reply.Blocks)
	if len(owned) != len(r.Expected.Tools) {
		t.Fatalf("%d calls, want %d", len(owned), len(r.Expected.Tools))
	}
	for i, want := range r.Expected.Tools {
		c := reply.Blocks[owned[i].Call].(content.ToolCall)
		if c.CallID != want.ID || c.Name != want.Name || c.Server != want.Server || c.Arguments != *want.Raw && !sameJSON(c.Arguments, *want.Raw) {
			t.Errorf("call %d: %+v, want %+v", i, c, want)
		}
		if (len(owned[i].Reasoning) > 0) != want.Preceded || len(owned[i].Reasoning) != len(want.Reasoning) || (owned[i].Ref >= 0) != (want.Ref != nil) {
			t.Errorf("call %d: thoughts %+v, want %+v", i, owned[i], want)
		}
	}
}

// TestChatDoesNotDependOnCuts: the network cuts where it likes, and a proxy
// may change line ends.
func TestChatDoesNotDependOnCuts(t *testing.T) {
	for _, r := range recorded(t, "chat") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			r.checkCuts(t)
		})
	}
}

// TestChatKeepsFinishedBlocksWhenCut ends each stream after each event: what was
// given out as whole is there, and is what the whole stream has in its place.
func TestChatKeepsFinishedBlocksWhenCut(t *testing.T) {
	t.Parallel()
	for _, r := range recorded(t, "chat") {
		if r.Container != "sse" {
			continue
		}
		events := r.events()
		full, _, _ := r.read(bytes.NewReader(r.body))
		for i := range events {
			if !torture() && len(events) > 40 && i%10 != 0 && i < len(events)-5 {
				continue
			}
			done := map[int]content.Block{}
			finished := false
			var a llm.Accumulator
			var failed error
			for e, err := range mustTarget("chat", r.Provider, r.Model).Decode(bytes.NewReader(bytes.Join(events[:i+1], nil)), llm.FramingAuto) {
				if failed = err; err != nil {
					break
				}
				if a.Add(e); e.Type == llm.BlockDone {
					done[e.Index] = e.Block
				}
				finished = finished || e.Head.Finish != ""
			}
			got := a.Response(failed == nil)
			if !finished && r.Expected.Error == nil && !errors.Is(failed, llm.ErrTruncated) {
				t.Fatalf("%s: after event %d: %v", r.File, i, failed)
			}
			if finished && failed != nil && r.Expected.Error == nil {
				t.Fatalf("%s: whole after event %d, but %v", r.File, i, failed)
			}
			whole := 0
			for j, b := range got.Blocks {
				if b.Form().Incomplete {
					continue
				}
				whole++
				was := full.Blocks[j]
				if !strings.HasPrefix(was.String(), b.String()) || was.Kind() != b.Kind() {
					t.Fatalf("%s: after event %d block %d is %+v, want %+v", r.File, i, j, b, was)
				}
			}
			if whole != len(done) {
				t.Fatalf("%s: after event %d: %d whole blocks, want %d", r.File, i, whole, len(done))
			}
		}
	}
}
