package openai

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How the events of a stream become items.
//
// An item begins with output_item.added, grows by deltas, and is complete with
// output_item.done; the last event of the stream repeats all items. Servers leave out any
// of these events, so the reader begins an item at the first event about it, and ends it at
// the first event that has the complete item. The reader finds an item by output_index,
// because some servers change the id in every event; by id if the event has no index; and
// by type and order if neither is known. Only the complete item has the final seal.

// responsesItem is an item that is being read.
type responsesItem struct {
	kind, id, callID string
	startJSON        rawjson.Value        // the item in output_item.added
	blocks           []*wire.BlockBuilder // one for each part of a message; else one
	seenParts        map[itemPart]bool
	done, matched    bool
}

// itemPart identifies a part of an item: the member that holds the part, and the index
// there.
type itemPart struct {
	member string
	index  int64
}

// deltaEvents describes the events that bring text, by event name without its suffix: the
// type of their item, the member of the item that gets the text, and the member of the done
// event that repeats the whole text.
var deltaEvents = map[string]struct{ kind, member, all string }{
	"response.output_text":                {"message", "output_text", "text"},
	"response.refusal":                    {"message", "refusal", "refusal"},
	"response.reasoning_summary_text":     {"reasoning", "summary", "text"},
	"response.reasoning_text":             {"reasoning", "content", "text"},
	"response.function_call_arguments":    {"function_call", "arguments", "arguments"},
	"response.custom_tool_call_input":     {"custom_tool_call", "input", "input"},
	"response.mcp_call_arguments":         {"mcp_call", "arguments", "arguments"},
	"response.code_interpreter_call_code": {"code_interpreter_call", "code", "code"},
}

// readItemAdded reads the event output_item.added.
func (r *responsesReader) readItemAdded(v rawjson.Value) {
	if v.Get("item").Kind() != rawjson.KindObject {
		return
	}
	n, ok := v.Get("output_index").Int()
	if !ok {
		n = int64(len(r.order))
	}
	if it := r.items[n]; it != nil {
		r.endItem(it, it.startJSON)
	}
	r.beginItem(n, v.Get("item"))
}

// readItemDone reads the event output_item.done, which has the complete item.
func (r *responsesReader) readItemDone(v rawjson.Value) {
	whole := v.Get("item")
	if whole.Kind() != rawjson.KindObject {
		return
	}
	it := r.findOrBeginItem(v, whole)
	if it.done && (it.id == "" || it.id != whole.Get("id").Text()) {
		it = r.beginItem(int64(len(r.order)), whole)
	}
	r.endItem(it, whole)
}

// readDelta reads a delta event, or the done event of a part if done is true; eventPrefix
// is the event name without the suffix. The text of a done event is new only if the part had no
// delta.
func (r *responsesReader) readDelta(eventPrefix string, v rawjson.Value, done bool) {
	w, known := deltaEvents[eventPrefix]
	if !known {
		return
	}
	it := r.findOrBeginItem(v, rawjson.NewObject("type", w.kind).Bytes())
	if it.done || it.kind != w.kind {
		return
	}
	piece := itemPart{member: w.member}
	text := v.Get("delta")
	if done {
		text = v.Get(w.all)
	}
	if piece.index, _ = v.Get("content_index").Int(); w.member == "summary" {
		piece.index, _ = v.Get("summary_index").Int()
	}
	if done && it.seenParts[piece] || text.Kind() != rawjson.KindString {
		return
	}
	p := r.findOrBeginBlock(it, piece)
	if p == nil {
		return
	}
	if it.seenParts == nil {
		it.seenParts = map[itemPart]bool{}
	}
	it.seenParts[piece] = true
	r.AppendText(p, text.Text())
}

// findOrBeginBlock returns the block that gets the deltas of a part, and begins it if necessary.
// It returns nil if the part must wait for the complete item.
func (r *responsesReader) findOrBeginBlock(it *responsesItem, part itemPart) *wire.BlockBuilder {
	p := it.blocks[0]
	switch b := p.Block.(type) {
	case content.Reasoning:
		if b.Source != "" && b.Source != part.member {
			return nil // another version of the same reasoning
		}
		if b.Source = part.member; len(p.Text) > 0 && !it.seenParts[part] {
			r.AppendText(p, "\n\n")
		}
		p.Block = b
	case content.Text:
		i := int(max(part.index, 0))
		if i > len(it.blocks) {
			return nil
		}
		if i == len(it.blocks) {
			form := b.Form()
			it.blocks = append(it.blocks, r.Begin(content.Text{Wire: content.Form{Dialect: form.Dialect, ID: form.ID}.Wire(), Of: b.Of}))
		}
		p = it.blocks[i]
		if b, ok := p.Block.(content.Text); ok && part.member == "refusal" {
			b.SetType(part.member)
			p.Block = b
		}
	}
	return p
}

// findOrBeginItem returns the item that an event is about, and begins it if no event did. For
// events without output_index, it is the item with the event's id, else the last item if that
// is open and of the same type.
func (r *responsesReader) findOrBeginItem(event, item rawjson.Value) *responsesItem {
	n, numbered := event.Get("output_index").Int()
	it := r.items[n]
	if !numbered {
		it = r.ids[cmp.Or(event.Get("item_id").Text(), item.Get("id").Text())]
		if last := len(r.order) - 1; it == nil && last >= 0 && !r.order[last].done && r.order[last].kind == item.Get("type").Text() {
			it = r.order[last]
		}
		n = int64(len(r.order))
	}
	if it != nil {
		return it
	}
	return r.beginItem(n, item)
}

// beginItem begins item v with output_index n, without its text, which follows.
func (r *responsesReader) beginItem(n int64, v rawjson.Value) *responsesItem {
	it := &responsesItem{kind: v.Get("type").Text(), id: v.Get("id").Text(), callID: v.Get("call_id").Text(), startJSON: bytes.Clone(v)}
	b := r.itemBlocks(v)[0]
	switch block := b.(type) {
	case content.Text:
		block.Text = ""
		b = block
	case content.Reasoning:
		block.Text, block.Parts, block.Source = "", nil, ""
		block.SetSeal(content.Seal{})
		b = block
	case content.ToolCall:
		block.Arguments = ""
		block.SetIncomplete(false)
		b = block
	case content.Native:
		if it.kind == "message" {
			b = content.Text{Wire: content.Form{Dialect: block.Form().Dialect, ID: it.id, Extra: extraOfMessageItem(v)}.Wire(), Of: content.KindAssistant}
		}
	}
	it.blocks = []*wire.BlockBuilder{r.BeginStreamed(b)}
	if r.items == nil {
		r.items, r.ids = map[int64]*responsesItem{}, map[string]*responsesItem{}
	}
	r.items[n], r.order = it, append(r.order, it)
	if it.id != "" && r.ids[it.id] == nil {
		r.ids[it.id] = it
	}
	return it
}

// endItem ends an item; v is the complete item.
func (r *responsesReader) endItem(it *responsesItem, v rawjson.Value) {
	if it.done {
		return
	}
	it.done = true
	if id := v.Get("id").Text(); id != "" && id != it.id {
		it.id = id
		if r.ids[id] == nil {
			r.ids[id] = it
		}
	}
	for i, b := range r.itemBlocks(v) {
		if i == len(it.blocks) {
			it.blocks = append(it.blocks, r.Begin(b))
		}
		replaceStreamedBlock(it.blocks[i], b)
	}
	for _, p := range it.blocks {
		r.End(p)
	}
}

// replaceStreamedBlock replaces a block that deltas built by the whole block. If the whole block has
// no text, the text of the deltas stays.
func replaceStreamedBlock(p *wire.BlockBuilder, whole content.Block) {
	text := strings.Join(p.Text, "")
	switch block := whole.(type) {
	case content.Native:
		if previous, ok := p.Block.(content.Text); ok && text != "" {
			previous.Text = text
			whole = previous
		}
	case content.Reasoning:
		if previous, ok := p.Block.(content.Reasoning); ok && text != "" && block.String() == "" {
			block.Text, block.Source = text, previous.Source
			block.SetExtra(rawjson.NonEmptyObject(rawjson.Without(block.Form().Extra, previous.Source)))
			whole = block
		}
	case content.ToolCall:
		if text != "" && block.Arguments == "" {
			block.Arguments = text
			block.SetExtra(rawjson.NonEmptyObject(rawjson.Without(block.Form().Extra, toolItemTraitsOf(block.Form().Type).arguments)))
		}
		if block.Form().Type == "function_call" {
			block.SetIncomplete(rawjson.IsTruncated(block.Arguments))
		}
		whole = block
	}
	p.Block, p.Text = whole, nil
}

// readRepeatedItems reads the list of all items at the end of a response. It matches them with
// the items that were read, by id, or by type and order where ids change, and adds the others.
func (r *responsesReader) readRepeatedItems(list rawjson.Value) {
	byKind := map[string][]*responsesItem{}
	for _, it := range r.order {
		byKind[it.kind] = append(byKind[it.kind], it)
	}
	for v := range r.Elements(list) {
		if v.Kind() != rawjson.KindObject {
			continue
		}
		kind, call := v.Get("type").Text(), v.Get("call_id").Text()
		it := r.ids[v.Get("id").Text()]
		if it == nil || it.matched || it.kind != kind {
			it = nil
			for len(byKind[kind]) > 0 && byKind[kind][0].matched {
				byKind[kind] = byKind[kind][1:]
			}
			if rest := byKind[kind]; len(rest) > 0 && (call == "" || rest[0].callID == "" || call == rest[0].callID) {
				it = rest[0]
			}
		}
		if it == nil {
			it = r.beginItem(int64(len(r.order)), v)
		}
		it.matched = true
		r.addLateSeal(it, v)
		r.endItem(it, v)
	}
}

// addLateSeal adds a seal that only the repeated item has.
func (r *responsesReader) addLateSeal(it *responsesItem, v rawjson.Value) {
	p := it.blocks[0]
	b, ok := p.Block.(content.Reasoning)
	if !ok || !it.done || b.Form().Seal.Data != "" || v.Get("encrypted_content").Text() == "" {
		return
	}
	p.Text = []string{b.String()}
	replaceStreamedBlock(p, r.itemBlocks(v)[0])
	r.MarkChanged(p)
}
