package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/internal/demo"
)

// block is the events of one block of a messages stream.
type block func(index int) []string

func messagesStream(id string, input, output int, thinking, rest block, stop string) []string {
	events := []string{sse("message_start", fmt.Sprintf(
		`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, demo.Model, input))}
	index := 0
	for _, b := range []block{thinking, rest} {
		if b != nil {
			events = append(events, b(index)...)
			index++
		}
	}
	return append(events,
		sse("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, output)),
		sse("message_stop", `{"type":"message_stop"}`))
}

func thinkingBlock(pieces ...string) block {
	return deltas(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", pieces, `{"type":"signature_delta","signature":"`+"c2lnbmF0dXJl"+`"}`)
}

func textBlock(pieces ...string) block {
	return deltas(`{"type":"text","text":""}`, "text_delta", "text", pieces, "")
}

// deltas returns a block as events, one for each word.
func deltas(begin, kind, field string, pieces []string, last string) block {
	return func(index int) []string {
		events := []string{sse("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, begin))}
		delta := func(d string) {
			events = append(events, sse("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)))
		}
		for _, piece := range pieces {
			for _, word := range strings.SplitAfter(piece, " ") {
				delta(fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field, quoted(word)))
			}
		}
		if last != "" {
			delta(last)
		}
		return append(events, sse("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
	}
}

func sse(event, data string) string { return "event: " + event + "\ndata: " + data + "\n\n" }

// quoted is a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always can
	}
	return string(b)
}
