package tract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// kept is a recorded response on its way through a store.
type kept struct {
	recording
	body   []byte
	blocks []content.Block // as they were decoded
	reply  *llm.Response
}

// everyRecording decodes every recorded response: of one that broke off, what
// came of it.
func everyRecording(t *testing.T) []*kept {
	t.Helper()
	dir, _ := recordings(t)
	var list []*kept
	for d := json.NewDecoder(bytes.NewReader(must(os.ReadFile(filepath.Join(dir, "manifest.jsonl")))(t))); d.More(); {
		k := &kept{}
		if err := d.Decode(&k.recording); err != nil {
			t.Fatal(err)
		}
		k.body = must(os.ReadFile(filepath.Join(dir, filepath.FromSlash(k.File))))(t)
		reply, err := llm.Collect(providers.Decode(k.API, k.Provider, k.Model, bytes.NewReader(k.body), llm.FramingAuto), nil)
		if broken := !isNull(k.Expected.Error) || strings.Contains(k.File, "truncated"); err != nil && !broken {
			t.Errorf("%s: %v", k.File, err)
		}
		if reply != nil && len(reply.Blocks) > 0 {
			k.reply, k.blocks = reply, slices.Clone(reply.Blocks)
			list = append(list, k)
		}
	}
	return list
}

// item is what the provider itself calls the answer: the part of its response
// that the next request repeats.
func (k *kept) item(t *testing.T) rawjson.Value {
	t.Helper()
	v := must(rawjson.Parse(k.body))(t)
	switch dialect, _ := providers.FindDialect(k.API); dialect {
	case "chat":
		return v.Get("choices").At(0).Get("message")
	case "messages":
		var o rawjson.Object
		o.SetString("role", "assistant")
		o.Set("content", v.Get("content"))
		return o.Bytes()
	case "responses":
		return v.Get("output")
	case "gemini":
		return v.Get("candidates").At(0).Get("content")
	case "interactions":
		return v.Get("steps")
	case "converse":
		return v.Get("output", "message")
	}
	return v.Get("message") // cohere and ollama
}

// replay is what stands for blocks in the next request. In the chat dialect the
// server is one that takes all its own fields back.
func (k *kept) replay(t *testing.T, blocks []content.Block) rawjson.Value {
	t.Helper()
	provider := k.Provider
	if k.API == "chat" {
		provider = "chat"
	}
	return must(providers.Replay(k.API, provider, k.Model, blocks))(t)
}

// TestRecordingsRoundTripThroughTheStore decodes, commits, reads and encodes every recorded
// response: the result equals the provider's response.
func TestRecordingsRoundTripThroughTheStore(t *testing.T) {
	list := everyRecording(t)
	store := filepath.Join(t.TempDir(), "store")
	repo := must(tract.Open(t.Context(), store, tract.OpenOptions{Create: true}))(t)
	for i, k := range list {
		if _, err := repo.Branch(fmt.Sprint("b", i)).AppendResponse(t.Context(), k.reply, tract.AppendOptions{}); err != nil {
			t.Errorf("%s: %v", k.File, err)
		}
	}
	if err := repo.Close(); err != nil {
		t.Fatal(err)
	}
	repo = must(tract.Open(t.Context(), store, tract.OpenOptions{ReadOnly: true}))(t)
	defer repo.Close()
	whole := 0
	for i, k := range list {
		t.Run(k.File, func(t *testing.T) {
			var blocks []content.Block
			for c, err := range repo.Log(t.Context(), fmt.Sprint("b", i), tract.LogOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, c.Block)
			}
			slices.Reverse(blocks)
			have, want := k.replay(t, blocks), k.replay(t, k.blocks)
			if k.Container == "json" && isNull(k.Expected.Error) {
				whole++
				if item := k.item(t); have != nil || !nothing(item) {
					want = item
				}
			}
			if have == nil && want == nil {
				return
			}
			if !rawjson.Equal(have, want) {
				t.Errorf("goes back as\n%s\nwant\n%s", have, want)
			}
			if h, w := bytesOf(nil, have), bytesOf(nil, want); !slices.Equal(h, w) {
				t.Errorf("its strings are\n%q\nwant\n%q", h, w)
			}
		})
	}
	if whole < 80 {
		t.Errorf("only %d answers came in one piece", whole)
	}
}

// nothing tells whether an item has no content at all, so that nothing of it is
// sent.
func nothing(item rawjson.Value) bool {
	list := item.Get("content")
	return list.Kind() == rawjson.KindArray && list.At(0) == nil
}

// bytesOf lists every string in a JSON value as it is written, in order.
func bytesOf(list []string, v rawjson.Value) []string {
	if v.Kind() == rawjson.KindString {
		return append(list, v.Text())
	}
	for e := range v.Elements() {
		list = bytesOf(list, e)
	}
	for _, e := range v.Members() {
		list = bytesOf(list, e)
	}
	slices.Sort(list) // members may come in another order
	return list
}

// TestStreamedAndWholeResponsesGiveEqualBlocks compares turns that were recorded both in one piece
// and as a stream: their blocks have the same kinds, forms, source fields and seals.
func TestStreamedAndWholeResponsesGiveEqualBlocks(t *testing.T) {
	pieces, pairs := map[string]*kept{}, 0
	list := everyRecording(t)
	for _, k := range list {
		if k.Container == "json" {
			pieces[turnOf(k)] = k
		}
	}
	for _, k := range list {
		piece := pieces[turnOf(k)]
		if k.Container == "json" || piece == nil || slices.Contains(unlike, k.File) {
			continue
		}
		pairs++
		t.Run(k.File, func(t *testing.T) {
			have, want := shapes(k.blocks), shapes(piece.blocks)
			if !slices.Equal(have, want) {
				t.Errorf("the stream has\n%q\nand %s\n%q", have, piece.File, want)
			}
		})
	}
	if pairs < 40 {
		t.Errorf("only %d pairs", pairs)
	}
}

// unlike is the streams that are another turn than the answer in one piece of that
// name: the model did something else, and the answer key says so too.
var unlike = []string{
	"google/googlethinking-gemini-3-pro-preview-thinking-streaming-t1.sse", // no thought was shown
	"google/googlethinking-gemini-3-pro-preview-thinking-streaming-t2.sse", // no thought was shown
	"lmstudio/tool-call-1.sse",               // another model
	"openai/responses-web-search-tool-1.sse", // it searched more often
}

// turnOf is the name of a turn, which both its forms have in common.
func turnOf(k *kept) string {
	name := strings.TrimSuffix(k.File, filepath.Ext(k.File))
	for _, word := range []string{"-streaming", "-stream", "stream-"} {
		name = strings.Replace(name, word, "", 1)
	}
	return k.API + " " + name
}

// shapes is what blocks are, whatever they say. Texts that follow one another are
// one, with the seal of any.
func shapes(blocks []content.Block) []string {
	var list []string
	text := false
	for _, b := range blocks {
		seal := b.Form().Seal.Type
		shape := fmt.Sprintf("%s %s", b.Kind(), seal)
		switch b := b.(type) {
		case content.Text:
			if text && seal != content.NoSeal {
				list[len(list)-1] = shape
			}
			if text {
				continue
			}
		case content.Reasoning:
			shape += fmt.Sprintf(" %s from %s, id %t", b.Format, b.Source, b.Form().ID != "")
		case content.ToolCall:
			shape += fmt.Sprintf(" %s, server %t", b.Name, b.Server)
		case content.Native:
			shape += " " + b.Form().Type
		}
		_, text = b.(content.Text)
		list = append(list, shape)
	}
	return list
}
