package openai

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How the items of a response are written.
//
// The Responses API accepts a reasoning item only if the item that followed it comes next. So
// the encoder holds reasoning back until the next item is added, and drops it at the end of
// the message if none follows, unless the request being repeated had it so. Text parts are
// collected in an open message, which closeMessage adds when any other item follows.
// Messages and function calls have ids only if the provider stores responses; otherwise it
// does not know them.

// encodeAssistantItemsWithIDs returns the original items of one response, with their ids. Encode sends
// them without ids unless the provider stores responses.
func encodeAssistantItemsWithIDs(t wire.Target, blocks []content.Block) rawjson.Value {
	p := responsesEncoder{Target: t, stored: true}
	p.addAssistant(blocks)
	if p.list.Bytes().At(0) == nil {
		return nil
	}
	return p.list.Bytes()
}

// responsesEncoder encodes the items of a request.
type responsesEncoder struct {
	wire.Target
	stored        bool // the provider stores responses, so it knows their ids
	asSent        bool // no item of the model is left out
	list          rawjson.Array
	heldReasoning []rawjson.Value // reasoning whose following item was not added yet

	message      *rawjson.Object // the message that is being built
	messageIsOwn bool            // the message came from this dialect
	parts        rawjson.Array
	messageText  rawjson.Value               // the content of the message, when it is a string; nil: it is a list
	calls        map[string]content.ToolCall // by their ids
	results      wire.ResultQueue
}

// addAssistant adds a message of the model. It leaves out reasoning that no item follows,
// because the API refuses it.
func (p *responsesEncoder) addAssistant(blocks []content.Block) {
	p.results.BeginResponse(blocks, &p.list)
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			p.addAssistantText(b)
		case content.Reasoning:
			p.encodeAndHoldReasoning(b)
		case content.ToolCall:
			p.addItem(p.encodeCall(b))
		case content.ToolResult:
			if b.Server && p.Owns(b) {
				p.addItem(p.encodeServerResult(b))
			}
		case content.Native:
			p.addAssistantNative(b)
		}
	}
	p.closeMessage()
	if p.asSent {
		p.addHeldReasoning()
	}
	p.heldReasoning = nil
}

// addItem adds the held reasoning and then an item.
func (p *responsesEncoder) addItem(v rawjson.Value) {
	if v == nil {
		return
	}
	p.closeMessage()
	p.addHeldReasoning()
	p.list.Add(v)
}

// addHeldReasoning adds the held reasoning.
func (p *responsesEncoder) addHeldReasoning() {
	for _, v := range p.heldReasoning {
		p.list.Add(v)
	}
	p.heldReasoning = nil
}

// openMessageFor begins a message of the model for block b, unless b belongs to the open
// message.
func (p *responsesEncoder) openMessageFor(b content.Block) {
	w := b.Form()
	own := p.Owns(b)
	var head rawjson.Value
	if own {
		head = rawjson.Value(w.Extra).Get(extraItemMessage)
	}
	if p.message != nil && p.messageText == nil && own == p.messageIsOwn && head == nil {
		return
	}
	p.closeMessage()
	p.addHeldReasoning()
	p.message, p.messageIsOwn = &rawjson.Object{}, own
	p.message.SetString("type", "message")
	p.message.SetString("role", "assistant")
	if !own {
		return
	}
	if w.ID != "" && p.stored {
		p.message.SetString("id", w.ID)
	}
	p.message.Merge(head)
	if head.Get(memberUntyped) != nil {
		untyped := rawjson.Without(p.message.Bytes(), "type", memberUntyped)
		p.message = new(rawjson.Object).Merge(untyped)
	}
}

// closeMessage adds the open message, if there is one.
func (p *responsesEncoder) closeMessage() {
	if p.message == nil {
		return
	}
	if p.messageText != nil {
		p.message.Set("content", p.messageText)
	} else {
		p.message.Set("content", p.parts.Bytes())
	}
	p.list.Add(p.message.Bytes())
	p.message, p.parts, p.messageText = nil, rawjson.Array{}, nil
}

// addAssistantText adds text of the model as a part of the open message.
func (p *responsesEncoder) addAssistantText(b content.Text) {
	if b.Text == "" {
		return
	}
	p.openMessageFor(b)
	o := rawjson.NewObject("type", "output_text", "text", b.Text)
	switch own := p.Owns(b); {
	case own && b.Form().Type == typeItemString:
		p.messageText = rawjson.AppendString(nil, b.Text)
		return
	case own && b.Form().Type == "refusal":
		o = rawjson.NewObject("type", "refusal", "refusal", b.Text)
	}
	p.parts.Add(o.Merge(p.Extra(b).Get(extraItemPart)).Bytes())
}

// addAssistantNative adds a native block: a part of a message, or an item.
func (p *responsesEncoder) addAssistantNative(b content.Native) {
	v := p.NativeJSON(b)
	if v == nil || p.HasForeignSeal(b) {
		return
	}
	if !strings.HasPrefix(b.Form().Type, typeItemPart) {
		p.addItem(v)
		return
	}
	p.openMessageFor(b)
	p.parts.Add(v)
}

// encodeAndHoldReasoning encodes reasoning that can be sent to this provider, and holds the item until
// the one that follows it is added. A reasoning item
// that has neither a seal nor a text is only a reference to a response that the provider stored; it
// is left out if the provider stores no responses. Some servers accept no reasoning without a seal.
func (p *responsesEncoder) encodeAndHoldReasoning(r content.Reasoning) {
	form := r.Form()
	sealed := form.Seal.Data != ""
	switch {
	case !p.Owns(r) || form.Incomplete || sealed && !p.CanOpen(form.Seal):
		return
	case !sealed && !p.stored && (r.Source != "content" || p.Quirks.NoReasoningField):
		return
	}
	p.closeMessage()
	extra := rawjson.Value(form.Extra)
	o := rawjson.NewObject("type", "reasoning")
	if form.ID != "" && (p.stored || !sealed) {
		o.SetString("id", form.ID)
	}
	summary := rawjson.Value("[]")
	switch {
	case r.Source == "content" && extra.Get("content") == nil:
		o.Set("content", wire.EncodeReasoningTexts("reasoning_text", r))
	case r.Source != "content":
		summary = wire.EncodeReasoningTexts("summary_text", r)
	}
	if extra.Get("summary") == nil {
		o.Set("summary", summary)
	}
	if sealed {
		o.SetString("encrypted_content", form.Seal.Data)
	}
	o.Merge(extra)
	p.heldReasoning = append(p.heldReasoning, bytes.Clone(o.Bytes()))
}

// encodeCall returns the item for a call. A call from another dialect becomes a function
// call.
func (p *responsesEncoder) encodeCall(b content.ToolCall) rawjson.Value {
	own := p.Owns(b)
	if p.calls == nil {
		p.calls = map[string]content.ToolCall{}
	}
	if !own || b.Form().Type == "" {
		b.SetType("function_call")
	}
	if !own {
		b.SetExtra(nil)
		b.SetID("")
		b.Arguments = cmp.Or(b.Arguments, "{}") // an empty text is not JSON
	}
	p.calls[b.CallID] = b
	form := b.Form()
	tool, extra := toolItemTraitsOf(form.Type), rawjson.Value(form.Extra)
	function := tool.runByClient && !tool.argumentsAreJSON
	o := rawjson.NewObject("type", form.Type)
	if form.ID != "" && (p.stored || !function) {
		o.SetString("id", form.ID)
	}
	if extra.Get("call_id") == nil && (function || b.CallID != form.ID) {
		o.SetString("call_id", p.callIDToSend(b.CallID))
	}
	if b.Name != tool.name && b.Name != "" {
		o.SetString("name", b.Name)
	}
	if tool.arguments != "" && (function || b.Arguments != "") && !hasAnyArgumentMember(extra, tool.arguments) {
		v, err := rawjson.Parse([]byte(b.Arguments))
		if err != nil || !tool.argumentsAreJSON {
			v = rawjson.AppendString(nil, b.Arguments)
		}
		o.Set(tool.arguments, v)
	}
	return o.Merge(extra).Bytes()
}

// hasAnyArgumentMember reports whether extra has the arguments of a call: in usualMember, or in one
// of otherArgumentMembers.
func hasAnyArgumentMember(extra rawjson.Value, usualMember string) bool {
	for _, other := range otherArgumentMembers {
		if extra.Get(other) != nil {
			return true
		}
	}
	return extra.Get(usualMember) != nil
}

// encodeServerResult returns the item for a result of the provider's own tool.
func (p *responsesEncoder) encodeServerResult(b content.ToolResult) rawjson.Value {
	extra := rawjson.Value(b.Form().Extra)
	o := rawjson.NewObject("type", b.Form().Type)
	o.SetNonEmpty("id", b.Form().ID)
	if extra.Get("call_id") == nil && b.CallID != b.Form().ID {
		o.SetString("call_id", b.CallID)
	}
	if v, err := rawjson.Parse(b.Parts); err == nil {
		o.Set(outputMember(b.Form().Type), v)
	} else if b.Text != "" {
		o.SetString(outputMember(b.Form().Type), b.Text)
	}
	return o.Merge(extra).Bytes()
}

// maxCallID is the longest allowed id of a call, in bytes.
const maxCallID = 64

// callIDToSend returns a call id that the API allows. Ids of this dialect stay as they are. Any
// other id that is empty or too long is changed, and different ids stay different.
func (p *responsesEncoder) callIDToSend(id string) string {
	if c, known := p.calls[id]; id != "" && known && p.Owns(c) {
		return id
	}
	return wire.ShortCallID(id, maxCallID)
}
