package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// streamSize is the approximate size of the decoded streams in bytes.
const streamSize = 1 << 20

// stream is a long streamed response of one dialect.
type stream struct {
	api, provider string
	bytes.Buffer
	events [][]byte // the JSON of each event
}

// event adds a JSON event.
func (s *stream) event(name, format string, args ...any) {
	data := fmt.Appendf(nil, format, args...)
	if name != "" {
		s.WriteString("event: " + name + "\n")
	}
	s.WriteString("data: ")
	s.Write(data)
	s.WriteString("\n\n")
	s.events = append(s.events, data)
}

// pieces calls add with words until the stream has reached the given part of its size.
func (s *stream) pieces(part float64, add func(word string)) {
	for n := 0; float64(s.Len()) < part*streamSize; n++ {
		add([...]string{" the", " sky", " scatters", " blue", "\\n\\n", " – “so”", " 400 nm"}[n%7])
	}
}

// decodes measures decoding a stream into blocks against parsing the JSON of its events.
func (b *bench) decodes(ctx context.Context) error {
	for _, s := range []*stream{chatStream(), messagesStream(), responsesStream(), geminiStream()} {
		parse := func(context.Context) error {
			for _, data := range s.events {
				var v any
				if err := json.Unmarshal(data, &v); err != nil {
					return err
				}
			}
			return nil
		}
		decode := func(context.Context) error {
			reply, err := llm.Collect(providers.Decode(s.api, s.provider, "", bytes.NewReader(s.Bytes()), llm.FramingAuto), nil)
			if err == nil && (len(reply.Blocks) != 3 || reply.Incomplete) {
				err = fmt.Errorf("%d blocks, want 3", len(reply.Blocks))
			}
			return err
		}
		took, err := alternate(ctx, b.rounds, 0, timed(parse), timed(decode))
		if err != nil {
			return fmt.Errorf("decode %s: %w", s.api, err)
		}
		bytes, err := allocated(func() error { return decode(ctx) })
		if err != nil {
			return err
		}
		name := "decode a " + s.api + " stream"
		b.compare(name, noLimit, times("", took[1]), times("json.Unmarshal of its events", took[0]))
		b.compare(name+", allocated", noLimit, megabytes("", int64(bytes)), megabytes("its size", int64(s.Len())))
	}
	return nil
}

// allocated returns the bytes that a call allocates.
func allocated(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

func chatStream() *stream {
	s := &stream{api: "chat", provider: "deepseek"}
	delta := func(delta, finish string) {
		s.event("", `{"id":"cca85624-4056","object":"chat.completion.chunk","created":1764664568,"model":"deepseek-reasoner","system_fingerprint":"fp_eaab8d114b","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null}`, delta, finish)
	}
	delta(`{"role":"assistant","content":null,"reasoning_content":""}`, "null")
	s.pieces(0.4, func(word string) { delta(`{"content":null,"reasoning_content":"`+word+`"}`, "null") })
	s.pieces(0.8, func(word string) { delta(`{"content":"`+word+`","reasoning_content":null}`, "null") })
	delta(`{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"save","arguments":"{\"text\":\""}}]}`, "null")
	s.pieces(1, func(word string) {
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"`+word+`"}}]}`, "null")
	})
	delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`, "null")
	delta(`{"content":""}`, `"tool_calls"`)
	s.WriteString("data: [DONE]\n\n")
	return s
}

func messagesStream() *stream {
	s := &stream{api: "messages", provider: "anthropic"}
	block := func(n int, start, kind, member string, until float64) {
		s.event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, n, start)
		s.pieces(until, func(word string) {
			s.event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":"%s"}}`, n, kind, member, word)
		})
	}
	stop := func(n int) { s.event("content_block_stop", `{"type":"content_block_stop","index":%d}`, n) }
	s.event("message_start", `{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
	block(0, `{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", 0.4)
	s.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"ErUBCkYIBxgCIkDfz"}}`)
	stop(0)
	block(1, `{"type":"text","text":""}`, "text_delta", "text", 0.8)
	stop(1)
	block(2, `{"type":"tool_use","id":"toolu_01","name":"save","input":{}}`, "input_json_delta", "partial_json", 0.8)
	s.event("content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\""}}`)
	s.pieces(1, func(word string) {
		s.event("content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"%s"}}`, word)
	})
	s.event("content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"}"}}`)
	stop(2)
	s.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5000}}`)
	s.event("message_stop", `{"type":"message_stop"}`)
	return s
}

// responsesStream contains everything twice, as the API sends it: in deltas, and whole when an
// item and the response are done.
func responsesStream() *stream {
	s := &stream{api: "responses", provider: "openai-responses"}
	n := 0
	event := func(kind, rest string) {
		s.event(kind, `{"type":"%s","sequence_number":%d,%s}`, kind, n, rest)
		n++
	}
	deltas := func(kind, at string, until float64) string {
		whole := ""
		s.pieces(until, func(word string) {
			event(kind, at+`,"delta":"`+word+`","obfuscation":"Kq3xvZ0pT"`)
			whole += word
		})
		return whole
	}
	event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5-2025-08-07","output":[]}`)
	event("response.output_item.added", `"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}`)
	event("response.reasoning_summary_part.added", `"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`)
	thought := deltas("response.reasoning_summary_text.delta", `"item_id":"rs_1","output_index":0,"summary_index":0`, 0.3)
	reasoning := `{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAABpM0yz","summary":[{"type":"summary_text","text":"` + thought + `"}]}`
	event("response.output_item.done", `"output_index":0,"item":`+reasoning)
	event("response.output_item.added", `"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	event("response.content_part.added", `"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	text := deltas("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0`, 0.65)
	message := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
	event("response.output_item.done", `"output_index":1,"item":`+message)
	event("response.output_item.added", `"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"save","arguments":""}`)
	event("response.function_call_arguments.delta", `"item_id":"fc_1","output_index":2,"delta":"{\"text\":\""`)
	written := deltas("response.function_call_arguments.delta", `"item_id":"fc_1","output_index":2`, 0.9)
	event("response.function_call_arguments.delta", `"item_id":"fc_1","output_index":2,"delta":"\"}"`)
	call := `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"save","arguments":"{\"text\":\"` + written + `\"}"}`
	event("response.output_item.done", `"output_index":2,"item":`+call)
	event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","model":"gpt-5-2025-08-07","output":[`+reasoning+","+message+","+call+`],"usage":{"input_tokens":9,"output_tokens":5000}}`)
	return s
}

func geminiStream() *stream {
	s := &stream{api: "gemini", provider: "google"}
	chunk := func(part, finish string) {
		s.event("", `{"candidates":[{"content":{"parts":[%s],"role":"model"},%s"index":0}],"usageMetadata":{"promptTokenCount":95,"candidatesTokenCount":23,"totalTokenCount":186,"thoughtsTokenCount":68},"modelVersion":"gemini-3-pro","responseId":"ywCzae2oL5ODz7IP29qJmQw"}`, part, finish)
	}
	sentence := func(word string) string { return word + word + " and so on, as it went before" + word }
	s.pieces(0.5, func(word string) { chunk(`{"text":"`+sentence(word)+`","thought":true}`, "") })
	s.pieces(1, func(word string) { chunk(`{"text":"`+sentence(word)+`"}`, "") })
	chunk(`{"functionCall":{"name":"save","args":{"text":"so"}},"thoughtSignature":"EqQBCqEBAb4"}`, `"finishReason":"STOP",`)
	return s
}
