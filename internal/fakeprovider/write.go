package fakeprovider

import "maps"

// writeMessages writes a response of the Anthropic messages API.
func writeMessages(o *writer, r *request, a response) {
	var blocks []object
	if a.reasoning != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": a.reasoning, "signature": seal(a.id)})
	}
	if a.text != "" {
		blocks = append(blocks, object{"type": "text", "text": a.text})
	}
	stop := "end_turn"
	for _, c := range a.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": c.arguments})
		stop = "tool_use"
	}
	usage := object{"input_tokens": 3, "cache_creation_input_tokens": 100, "cache_read_input_tokens": max(a.tokens-103, 0), "output_tokens": 60}
	message := object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model, "content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if !r.stream {
		o.json(message)
		return
	}
	o.begin()
	start := maps.Clone(message)
	start["content"], start["stop_reason"] = []object{}, nil
	o.event(object{"type": "message_start", "message": start}, true)
	o.event(object{"type": "ping"}, true)
	for i, b := range blocks {
		empty, deltas := blockDeltas(b)
		o.event(object{"type": "content_block_start", "index": i, "content_block": empty}, true)
		for _, delta := range deltas {
			o.event(object{"type": "content_block_delta", "index": i, "delta": delta}, true)
		}
		o.event(object{"type": "content_block_stop", "index": i}, true)
	}
	o.event(object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage}, true)
	o.event(object{"type": "message_stop"}, true)
}

// blockDeltas returns how a stream begins a block, and the deltas that complete it.
func blockDeltas(b object) (empty object, deltas []object) {
	add := func(kind, member, text string) {
		for _, piece := range pieces(text) {
			deltas = append(deltas, object{"type": kind, member: piece})
		}
	}
	empty = maps.Clone(b)
	switch b["type"] {
	case "thinking":
		empty["thinking"], empty["signature"] = "", ""
		add("thinking_delta", "thinking", b["thinking"].(string))
		deltas = append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		empty["text"] = ""
		add("text_delta", "text", b["text"].(string))
	case "tool_use":
		empty["input"] = object{}
		add("input_json_delta", "partial_json", encode(b["input"]))
	}
	return empty, deltas
}

// writeResponses writes a response of the OpenAI responses API.
func writeResponses(o *writer, r *request, a response) {
	var items []object
	if a.reasoning != "" {
		items = append(items, object{"id": "rs_" + a.id, "type": "reasoning", "summary": []object{{"type": "summary_text", "text": a.reasoning}}, "encrypted_content": "gAAAA" + seal(a.id)})
	}
	if a.text != "" {
		items = append(items, object{"id": "msg_" + a.id, "type": "message", "status": "completed", "role": "assistant", "content": []object{outputText(a.text)}})
	}
	for _, c := range a.calls {
		item := object{"id": "fc_" + c.id, "type": "function_call", "status": "completed", "name": c.name, "call_id": "call_" + c.id, "arguments": encode(c.arguments)}
		if c.space != "" {
			item["namespace"] = c.space
		}
		items = append(items, item)
	}
	begun := object{"id": "resp_" + a.id, "object": "response", "created_at": 1790000000 + a.number, "status": "in_progress", "model": a.model, "output": []object{}, "usage": nil}
	whole := maps.Clone(begun)
	whole["status"], whole["output"] = "completed", items
	whole["usage"] = object{
		"input_tokens": a.tokens, "input_tokens_details": object{"cached_tokens": 10}, "output_tokens": 60,
		"output_tokens_details": object{"reasoning_tokens": 20}, "total_tokens": a.tokens + 60,
	}
	if !r.stream {
		o.json(whole)
		return
	}
	o.begin()
	number := 0
	event := func(kind string, v object) {
		v["type"], v["sequence_number"] = kind, number
		number++
		o.event(v, true)
	}
	event("response.created", object{"response": begun})
	event("response.in_progress", object{"response": begun})
	for i, item := range items {
		writeItem(event, i, item)
	}
	event("response.completed", object{"response": whole})
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}}
}

// writeItem writes the events of one output item.
func writeItem(event func(kind string, v object), i int, item object) {
	id, begun := item["id"], maps.Clone(item)
	added := func() { event("response.output_item.added", object{"output_index": i, "item": begun}) }
	switch item["type"] {
	case "reasoning":
		begun["summary"], begun["encrypted_content"] = []object{}, "gAAAAother" // the API replaces it at the end
		added()
		part := item["summary"].([]object)[0]
		event("response.reasoning_summary_part.added", object{"item_id": id, "output_index": i, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
		for _, piece := range pieces(part["text"].(string)) {
			event("response.reasoning_summary_text.delta", object{"item_id": id, "output_index": i, "summary_index": 0, "delta": piece})
		}
		event("response.reasoning_summary_text.done", object{"item_id": id, "output_index": i, "summary_index": 0, "text": part["text"]})
		event("response.reasoning_summary_part.done", object{"item_id": id, "output_index": i, "summary_index": 0, "part": part})
	case "message":
		begun["status"], begun["content"] = "in_progress", []object{}
		added()
		part := item["content"].([]object)[0]
		event("response.content_part.added", object{"item_id": id, "output_index": i, "content_index": 0, "part": outputText("")})
		for _, piece := range pieces(part["text"].(string)) {
			event("response.output_text.delta", object{"item_id": id, "output_index": i, "content_index": 0, "delta": piece})
		}
		event("response.output_text.done", object{"item_id": id, "output_index": i, "content_index": 0, "text": part["text"]})
		event("response.content_part.done", object{"item_id": id, "output_index": i, "content_index": 0, "part": part})
	case "function_call":
		begun["status"], begun["arguments"] = "in_progress", ""
		added()
		for _, piece := range pieces(item["arguments"].(string)) {
			event("response.function_call_arguments.delta", object{"item_id": id, "output_index": i, "delta": piece})
		}
		event("response.function_call_arguments.done", object{"item_id": id, "output_index": i, "arguments": item["arguments"]})
	}
	event("response.output_item.done", object{"output_index": i, "item": item})
}

// writeChat writes a response of the chat completions API.
func writeChat(o *writer, r *request, a response) {
	var calls []object
	finish := "stop"
	for i, c := range a.calls {
		calls = append(calls, object{"index": i, "id": "call_" + c.id, "type": "function", "function": object{"name": c.name, "arguments": encode(c.arguments)}})
		finish = "tool_calls"
	}
	usage := object{"prompt_tokens": a.tokens, "completion_tokens": 60, "total_tokens": a.tokens + 60, "completion_tokens_details": object{"reasoning_tokens": 20}}
	head := object{"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": 1790000000 + a.number, "model": a.model}
	if !r.stream {
		message := object{"role": "assistant", "content": a.text}
		if a.reasoning != "" {
			message["reasoning_content"] = a.reasoning
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		head["choices"], head["usage"] = []object{{"index": 0, "message": message, "finish_reason": finish}}, usage
		o.json(head)
		return
	}
	o.begin()
	head["object"] = "chat.completion.chunk"
	chunk := func(delta object, finish any) {
		v := maps.Clone(head)
		v["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": finish}}
		o.event(v, false)
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(a.reasoning) {
		chunk(object{"reasoning_content": piece}, nil)
	}
	for _, piece := range pieces(a.text) {
		chunk(object{"content": piece}, nil)
	}
	for i, c := range a.calls {
		chunk(object{"tool_calls": []object{{"index": i, "id": "call_" + c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil)
		for _, piece := range pieces(encode(c.arguments)) {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	chunk(object{}, finish)
	last := maps.Clone(head)
	last["choices"], last["usage"] = []object{}, usage
	o.event(last, false)
	o.write("data: [DONE]\n\n")
}

// writeGemini writes a response of generateContent.
func writeGemini(o *writer, r *request, a response, callIDs bool) {
	var parts []object
	if a.reasoning != "" {
		parts = append(parts, object{"text": "**Planning**\n\n" + a.reasoning, "thought": true})
	}
	for _, piece := range pieces(a.text) {
		parts = append(parts, object{"text": piece})
	}
	for i, c := range a.calls {
		call := object{"name": c.name, "args": c.arguments}
		if callIDs {
			call["id"] = "call_" + c.id
		}
		part := object{"functionCall": call}
		if i == 0 { // of parallel calls only the first has a signature
			part["thoughtSignature"] = seal(a.id)
		}
		parts = append(parts, part)
	}
	chunk := func(parts []object, last bool) object {
		candidate := object{"content": object{"parts": parts, "role": "model"}, "index": 0}
		if last {
			candidate["finishReason"] = "STOP"
		}
		return object{
			"candidates": []object{candidate}, "modelVersion": a.model, "responseId": a.id,
			"usageMetadata": object{"promptTokenCount": a.tokens, "candidatesTokenCount": 40, "thoughtsTokenCount": 20, "totalTokenCount": a.tokens + 60},
		}
	}
	if !r.stream {
		o.json(chunk(parts, true))
		return
	}
	o.begin()
	for i, part := range parts {
		o.event(chunk([]object{part}, i == len(parts)-1), false)
	}
}
