package wire

import (
	"cmp"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// How blocks become the messages of a request.
//
// Formats differ in two ways. Where roles have to alternate and results of tools are
// parts of a user message (messages, converse, gemini), a MessageBuilder collects blocks
// of one role into one message, with results first. Where each result is a message or an
// item of its own (chat, responses, cohere, ollama, interactions), a ResultQueue holds
// results back until the next message and writes them in the order of their calls:
// tools may finish in any order, and equal requests have to give equal bytes.

// ResultQueue holds tool results back until all results of a message of the model are
// there, and writes them in the order of their calls.
type ResultQueue struct {
	Calls     []string // ids of the calls in the last message of the model, in order
	Results   []queuedResult
	keepOrder bool
}

// queuedResult is one result, as it is sent.
type queuedResult struct {
	id    string
	json  rawjson.Value
	order int
}

// Add adds a result: the id of its call, what is sent, and the form of the block. With
// the form late all results stay in the order in which they are added.
func (w *ResultQueue) Add(id string, v rawjson.Value, form rawjson.Value) {
	w.Results = append(w.Results, queuedResult{id: id, json: v})
	w.keepOrder = w.keepOrder || form.Get("late").Bool()
}

// takeInOrder empties the queue and returns the results in the order of their calls. A
// repeated result comes after all first ones, one without a known call comes last.
func (w *ResultQueue) takeInOrder() (list []rawjson.Value) {
	if !w.keepOrder {
		seen := map[string]int{}
		for i, r := range w.Results {
			at := slices.Index(w.Calls, r.id)
			if at < 0 {
				at = len(w.Calls)
			}
			w.Results[i].order = at + seen[r.id]*(len(w.Calls)+1)
			seen[r.id]++
		}
		slices.SortStableFunc(w.Results, func(a, b queuedResult) int { return a.order - b.order })
	}
	for _, r := range w.Results {
		list = append(list, r.json)
	}
	w.Results, w.keepOrder = nil, false
	return list
}

// Flush appends the results to a list, each as a message of its own.
func (w *ResultQueue) Flush(to *rawjson.Array) {
	for _, v := range w.takeInOrder() {
		to.Add(v)
	}
}

// BeginResponse begins a message of the model: the results before it are complete, and the
// next results are for its calls.
func (w *ResultQueue) BeginResponse(answer []content.Block, to *rawjson.Array) {
	w.Flush(to)
	w.Calls = nil
	for _, b := range answer {
		if c, ok := b.(content.ToolCall); ok && !c.Server {
			w.Calls = append(w.Calls, c.CallID)
		}
	}
}

// MessageBuilder builds messages whose roles alternate, as some formats require: blocks of
// one role become one message, with results first. Roles are those of the wire.
// Instructions are in no message but in System.
type MessageBuilder struct {
	ModelRole   string // the name of the model's role
	BlocksField string // the member of a message that holds its blocks

	System rawjson.Array
	List   rawjson.Array

	role       string // of the message that is being built
	blocks     []rawjson.Value
	results    ResultQueue
	HasResults bool   // the last message has results
	wireRole   string // of the message on the wire; empty: role
	asString   bool   // the content of the message is a string, if it is one text
}

// BlockEncoder encodes one block after the other; Flush ends the last message.
type BlockEncoder interface {
	Add(role content.Role, b content.Block)
	Flush()
}

// EncodeBlocks encodes all blocks of messages.
func EncodeBlocks(p BlockEncoder, messages []content.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			p.Add(m.Role, b)
		}
	}
	p.Flush()
}

// roleSystem is the role of blocks that are in no message.
const roleSystem = "system"

// roleOf returns the role of the message that takes a block; empty when no message does.
func (t *MessageBuilder) roleOf(role content.Role, b content.Block) string {
	if r, ok := b.(content.ToolResult); ok {
		if r.Server {
			return t.ModelRole
		}
		return "user"
	}
	switch role {
	case content.RoleAssistant:
		return t.ModelRole
	case content.RoleSystem:
		return roleSystem
	case content.NoRole:
		return ""
	}
	return "user"
}

// StartMessage goes on to the message that takes a block whose encoding is v. It returns
// the role of that message and whether it is new. The role is empty for a block that
// cannot be sent (v is nil) and for an instruction, which is added to System.
func (t *MessageBuilder) StartMessage(role content.Role, b content.Block, v rawjson.Value) (to string, begun bool) {
	to = t.roleOf(role, b)
	switch {
	case v == nil || to == "":
		return "", false
	case to == roleSystem:
		t.System.Add(v)
		return "", false
	}
	return to, t.StartMessageOf(to, false)
}

// StartMessageOf goes on to the message of a role of the wire: the one that is being
// built if it has that role and always is false, else a new one. It reports whether it
// is new.
func (t *MessageBuilder) StartMessageOf(role string, always bool) (isNew bool) {
	if role == t.role && !always {
		return false
	}
	t.Flush()
	t.role = role
	return true
}

// NoWireRole is a role for [MessageBuilder.RenameRole]: the message has none.
const NoWireRole = "-"

// RenameRole returns the message that is being built another role on the wire.
func (t *MessageBuilder) RenameRole(role string) { t.wireRole = role }

// AsString makes the content of the message a string when it is one text in the end.
func (t *MessageBuilder) AsString() { t.asString = true }

// AppendBlock appends a block, encoded as v, to the message that is being built.
func (t *MessageBuilder) AppendBlock(b content.Block, v rawjson.Value) {
	switch b := b.(type) {
	case content.ToolResult:
		if !b.Server {
			t.results.Add(b.CallID, v, rawjson.Value(b.Form().Extra).Get(ExtraForm))
			return
		}
	case content.ToolCall:
		if !b.Server {
			t.results.Calls = append(t.results.Calls, b.CallID)
		}
	}
	t.blocks = append(t.blocks, v)
}

// Flush ends the message that is being built.
func (t *MessageBuilder) Flush() {
	if len(t.blocks)+len(t.results.Results) == 0 {
		return
	}
	t.HasResults = len(t.results.Results) > 0
	blocks := append(t.results.takeInOrder(), t.blocks...)
	body := rawjson.ArrayOf(blocks...)
	if text := blocks[0].Get("text"); t.asString && len(blocks) == 1 && text != nil {
		body = text
	}
	var m rawjson.Object
	if t.wireRole != NoWireRole {
		m.SetString("role", cmp.Or(t.wireRole, t.role))
	}
	m.Set(t.BlocksField, body)
	t.List.Add(m.Bytes())
	t.blocks, t.asString, t.wireRole = nil, false, ""
	if t.role == "user" {
		t.results.Calls = nil
	}
	t.role = ""
}
