package openai

import (
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// TestChunksShareOneMap: the reader sorts the members of a chunk into a map that all chunks
// share, and no member of one chunk is read again with the next.
func TestChunksShareOneMap(t *testing.T) {
	target := wire.NewTarget(Chat, "chat", true, wire.Quirks{})
	c := &chatReader{BlockWriter: &wire.BlockWriter{Target: target}}
	empty := rawjson.Value(`{"role":"assistant","content":""}`)
	c.readMessage(empty)
	if n := testing.AllocsPerRun(100, func() { c.readMessage(empty) }); n > 2 {
		t.Errorf("a chunk without text makes %v allocations, want at most 2: a map for each chunk makes 5", n)
	}
	c.readMessage(rawjson.Value(`{"extra_content":{"google":{"note":"a"}}}`))
	c.readMessage(empty)
	if got, want := string(c.unknownFields.Object()), `{"extra_content":{"google":{"note":"a"}}}`; got != want {
		t.Errorf("unknown members after an empty chunk: %s, want %s", got, want)
	}
}
