package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tract-vcs/tract/llm/llmtest"
)

// The text of the recording, written for the demo in the formats of two kinds of servers.
const (
	demoModel     = "demo-1"
	demoQuestion  = "Why is the sky blue?"
	demoAsk       = "What is the sky like in Paris right now?"
	demoForecast  = "14 °C, clear, wind from the west"
	demoLast      = "So would a photo taken there now show a blue sky?"
	demoSignature = "VHJhY3QgZGVtbzogYSBzaWduYXR1cmUgdGhhdCBtdXN0IGNvbWUgYmFjayBhcyBpdCBpcw=="
	demoCall      = "toolu_demo_weather"
	demoTools     = `[{"name":"get_weather","description":"The weather in a city, now.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`
)

// demoScript returns the exchanges of the demo. pace is the time between two pieces of an
// answer.
func demoScript(pace time.Duration) []llmtest.Exchange {
	first := messagesStream("msg_demo_1", 21, 64,
		thinkingBlock("The question is about scattering. Short waves scatter much more than long ones: ", "the strength goes with the inverse fourth power of the wavelength. ", "Violet scatters even more, but the sun sends less of it and the eye sees it badly."),
		textBlock("Air scatters short waves of light far more than long ones, ", "so blue comes to us from all over the sky, ", "while the sun itself looks a little yellow."),
		"end_turn")
	call := messagesStream("msg_demo_2", 118, 41,
		thinkingBlock("I cannot know the weather by thinking. ", "There is a tool for it, and the city is Paris."),
		toolUseBlock(demoCall, "get_weather", `{"city":`, ` "Paris"}`),
		"tool_use")
	answer := messagesStream("msg_demo_3", 176, 19, nil,
		textBlock("Clear, 14 degrees, ", "with a wind from the west: the sky over Paris is blue."),
		"end_turn")
	return []llmtest.Exchange{
		{Path: "/v1/messages", Chunks: first, Pace: pace},
		{Path: "/v1/messages", Chunks: call, Pace: pace},
		{Path: "/v1/messages", Chunks: answer, Pace: pace, Check: wantsThought},
		{Path: "/v1/chat/completions", Chunks: chatStream(
			[]string{"Clear sky over Paris, daytime assumed. ", "Scattering makes it blue for a camera too."},
			[]string{"Yes, if it is day there: ", "a camera sees the same scattered light ", "as you do."}), Pace: pace},
	}
}

// wantsThought refuses a request in a tool loop without the signed reasoning, as the real server
// does.
func wantsThought(r *llmtest.Request) error {
	if !bytes.Contains(r.Body, []byte(demoSignature)) {
		return errors.New("the signed thought before the tool call is missing")
	}
	return nil
}

// block is the events of one block of a messages stream.
type block func(index int) []string

func messagesStream(id string, input, output int, thinking, rest block, stop string) []string {
	events := []string{sse("message_start", fmt.Sprintf(
		`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, demoModel, input))}
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
	return deltas(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", pieces, `{"type":"signature_delta","signature":"`+demoSignature+`"}`)
}

func textBlock(pieces ...string) block {
	return deltas(`{"type":"text","text":""}`, "text_delta", "text", pieces, "")
}

func toolUseBlock(id, name string, pieces ...string) block {
	return deltas(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name), "input_json_delta", "partial_json", pieces, "")
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

func chatStream(thoughts, text []string) []string {
	var events []string
	chunk := func(delta, finish string) {
		events = append(events, fmt.Sprintf(
			"data: {\"id\":\"chatcmpl-demo\",\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", demoModel, delta, finish))
	}
	for _, part := range []struct {
		field  string
		pieces []string
	}{{"reasoning_content", thoughts}, {"content", text}} {
		for _, piece := range part.pieces {
			for _, word := range strings.SplitAfter(piece, " ") {
				chunk(fmt.Sprintf(`{%q:%s}`, part.field, quoted(word)), "null")
			}
		}
	}
	chunk("{}", `"stop"`)
	return append(events,
		"data: {\"id\":\"chatcmpl-demo\",\"object\":\"chat.completion.chunk\",\"model\":\""+demoModel+"\",\"choices\":[],\"usage\":{\"prompt_tokens\":204,\"completion_tokens\":31,\"total_tokens\":235,\"completion_tokens_details\":{\"reasoning_tokens\":14}}}\n\n",
		"data: [DONE]\n\n")
}

// quoted is a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always can
	}
	return string(b)
}
