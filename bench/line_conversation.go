package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// conversation measures conversations with a model as they are stored with everything that
// proves what was sent: one of short messages, and one of a coding agent with a system
// prompt of 20 KB, 20 tools, and a tool result of 2 to 30 KB in each turn.
func (b *bench) conversation(ctx context.Context) error {
	if err := b.storedConversation(ctx, "a conversation", chatTurn, nil, "", atMost(0.75)); err != nil {
		return err
	}
	return b.storedConversation(ctx, "an agent's conversation", agentTurn, agentTools(), agentInstructions(), noLimit)
}

// A turnMaker generates one turn: what is sent to the model, and its response as a stream.
type turnMaker func(n int) (sent []content.Block, response []byte, text int)

// storedConversation measures the bytes of a conversation and the time of its turns. The
// limit is that of its bytes after gc to its text.
func (b *bench) storedConversation(ctx context.Context, name string, turn turnMaker, tools []llm.Tool, system string, afterGC limit) error {
	h := &history{size: b.turns, dir: filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-")), bench: b}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return err
	}
	took, err := h.converse(ctx, turn, tools, system)
	if err != nil {
		return err
	}
	before, err := folderSize(h.store())
	if err != nil {
		return err
	}
	b.record(fmt.Sprintf("a turn of %s: prepare and accept", name), noLimit, times("", took))
	bytesOf := fmt.Sprintf("bytes of %s of %d turns", name, b.turns)
	b.compare(bytesOf+" before gc", noLimit, megabytes("", before), megabytes("its text", h.text))
	if !b.hasProgram(bytesOf + " after gc") {
		return nil
	}
	after, err := h.sizeAfterGC(ctx)
	if err != nil {
		return err
	}
	b.compare(bytesOf+" after gc", afterGC, megabytes("", after), megabytes("its text", h.text))
	return nil
}

// converse stores a conversation as a program with its own transport does, and returns
// the time of each turn. The responses are streams that begin with reasoning.
func (h *history) converse(ctx context.Context, turn turnMaker, tools []llm.Tool, system string) (took []time.Duration, err error) {
	target, err := providers.Open("deepseek", providers.Config{Model: "deepseek-reasoner"})
	if err != nil {
		return nil, err
	}
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{Create: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	branch := repo.Branch("main")
	if system != "" {
		h.text += int64(len(system))
		if _, err := branch.Append(ctx, []content.Block{content.System(system)}, tract.AppendOptions{}); err != nil {
			return nil, err
		}
	}
	for n := range h.size {
		sent, response, text := turn(n)
		h.text += int64(text)
		start := time.Now()
		if _, err := branch.Append(ctx, sent, tract.AppendOptions{}); err != nil {
			return nil, err
		}
		x, err := branch.Prepare(ctx, target, tract.PrepareOptions{AskOptions: tract.AskOptions{Tools: tools}})
		if err != nil {
			return nil, err
		}
		if _, err := branch.Accept(ctx, x, bytes.NewReader(response)); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// chatTurn is a question and its answer, which begins with reasoning.
func chatTurn(n int) (sent []content.Block, response []byte, text int) {
	said := [3]string{}
	for i := range said {
		said[i] = message(historySeed, 3*n+i)
		text += len(said[i])
	}
	return []content.Block{content.User(said[0])}, responseStream(n, said[1], said[2], ""), text
}

// agentTurn is the result of the previous turn's tool call (the first turn has a question),
// and a response with reasoning, a sentence and another call.
func agentTurn(n int) (sent []content.Block, response []byte, text int) {
	result := toolOutput(historySeed, n)
	sent = []content.Block{content.ToolResult{CallID: callID(n - 1), Text: result}}
	if n == 0 {
		result = message(historySeed, n)
		sent = []content.Block{content.User(result)}
	}
	reasoning, answer := message(historySeed, 3*n+1), message(historySeed, 3*n+2)[:100]
	return sent, responseStream(n, reasoning, answer, callID(n)), len(result) + len(reasoning) + len(answer)
}

func callID(n int) string { return fmt.Sprintf("call_%d", n) }

// agentInstructions is a system prompt of 20 KB.
func agentInstructions() string {
	var b strings.Builder
	writeText(&b, rand.New(rand.NewPCG(vocabularySeed, 2)), 20_000)
	return b.String()
}

// agentTools is 20 tools with a description of 1 KB and a schema each.
func agentTools() []llm.Tool {
	tools := make([]llm.Tool, 20)
	for i := range tools {
		var b strings.Builder
		writeText(&b, rand.New(rand.NewPCG(vocabularySeed, uint64(3+i))), 1000)
		schema, _ := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{
			"path": map[string]string{"type": "string", "description": b.String()[:100]},
		}}) // strings and maps can always be marshaled
		tools[i] = llm.Tool{Name: fmt.Sprintf("tool_%d", i), Description: b.String(), Schema: schema}
	}
	return tools
}

// responseStream is a streamed response: reasoning, then text, then a tool call unless call
// is empty.
func responseStream(n int, reasoning, text, call string) []byte {
	s := &stream{api: "chat", provider: "deepseek"}
	chunk := func(delta, finish, rest string) {
		s.event("", `{"id":"answer-%d","object":"chat.completion.chunk","created":%d,"model":"deepseek-reasoner","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]%s}`,
			n, firstTime/1000+n, delta, finish, rest)
	}
	for _, part := range []struct{ member, text string }{{"reasoning_content", reasoning}, {"content", text}} {
		for word := range strings.SplitAfterSeq(part.text, " ") {
			chunk(fmt.Sprintf("%q:%q", part.member, word), "null", "")
		}
	}
	finish := `"stop"`
	if call != "" {
		finish = `"tool_calls"`
		chunk(fmt.Sprintf(`"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"tool_%d","arguments":"{\"path\":\"/src/%d.go\"}"}}]`, call, n%20, n), "null", "")
	}
	chunk(`"content":""`, finish, fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, 300*(n+1), 300, 300*(n+2)))
	s.WriteString("data: [DONE]\n\n")
	return s.Bytes()
}
