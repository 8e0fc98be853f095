package wire

import (
	"cmp"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// How blocks become the messages of a request.
//
// There are two kinds of dialects. In some, roles must alternate, and tool results are parts
// of a user message (messages, converse, gemini). There, a MessageBuilder collects blocks of
// one role into one message, with results first. In the others, each result is a message or
// an item of its own (chat, responses, cohere, ollama, interactions). There, a ResultQueue
// holds results back until the next message, and writes them in the order of their calls:
// tools may finish in any order, and equal requests must give equal bytes.

// ResultQueue holds tool results back until the next message, and then writes them in the
// order of their calls.
type ResultQueue struct {
	Calls     []string // ids of the calls in the last message of the model, in order
	Results   []queuedResult
	keepOrder bool
}

// queuedResult is one encoded result.
type queuedResult struct {
	id    string
	json  rawjson.Value
	order int
}

// Add adds a result: the id of its call, its encoding, and the form of its block. If the form
// has the member late, all results stay in the order in which they were added.
func (w *ResultQueue) Add(id string, v rawjson.Value, form rawjson.Value) {
	w.Results = append(w.Results, queuedResult{id: id, json: v})
	w.keepOrder = w.keepOrder || form.Get("late").Bool()
}

// takeInCallOrder empties the queue and returns the results in the order of their calls. A
// second result of a call comes after all first results. Among these, a result of an unknown
// call comes last.
func (w *ResultQueue) takeInCallOrder() (list []rawjson.Value) {
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
	for _, v := range w.takeInCallOrder() {
		to.Add(v)
	}
}

// BeginResponse begins a message of the model. It flushes the queued results to a list; the
// next results belong to the calls of answer.
func (w *ResultQueue) BeginResponse(answer []content.Block, to *rawjson.Array) {
	w.Flush(to)
	w.Calls = nil
	for _, b := range answer {
		if c, ok := b.(content.ToolCall); ok && !c.Server {
			w.Calls = append(w.Calls, c.CallID)
		}
	}
}

// MessageBuilder builds messages whose roles alternate, as some APIs require. Blocks of one
// role become one message, with results first. Roles are role names of the API.
// Instructions are not in a message but in System.
type MessageBuilder struct {
	ModelRole   string // the name of the model's role
	BlocksField string // the member of a message that holds its blocks

	System rawjson.Array
	List   rawjson.Array

	role       string // role of the message that is being built
	blocks     []rawjson.Value
	results    ResultQueue
	HasResults bool   // the last message has results
	wireRole   string // role to write instead of role; empty: role
	asString   bool   // write the content as a string if it is one text
}

// BlockEncoder encodes blocks one by one. Flush ends the last message.
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

// roleSystem is the role of blocks that are added to System.
const roleSystem = "system"

// messageRoleFor returns the role, in the API, of the message for a block; empty when no message
// has it.
func (t *MessageBuilder) messageRoleFor(role content.Role, b content.Block) string {
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

// StartMessage continues the message for block b, or begins one. v is the encoding of b.
// StartMessage returns the role of the message, and whether it is new. The role is empty for
// a block that cannot be sent (v is nil) and for an instruction, which is added to System.
func (t *MessageBuilder) StartMessage(role content.Role, b content.Block, v rawjson.Value) (to string, begun bool) {
	to = t.messageRoleFor(role, b)
	switch {
	case v == nil || to == "":
		return "", false
	case to == roleSystem:
		t.System.Add(v)
		return "", false
	}
	return to, t.StartMessageOf(to, false)
}

// StartMessageOf continues the message that is being built if that has the role and always is
// false; else it begins a new one. It reports whether the message is new.
func (t *MessageBuilder) StartMessageOf(role string, always bool) (isNew bool) {
	if role == t.role && !always {
		return false
	}
	t.Flush()
	t.role = role
	return true
}

// NoWireRole is a role for [MessageBuilder.RenameRole]: the message is written without a role.
const NoWireRole = "-"

// RenameRole sets the role that is written for the message that is being built.
func (t *MessageBuilder) RenameRole(role string) { t.wireRole = role }

// AsString says that the content of the message is written as a string if it is one text.
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
	blocks := append(t.results.takeInCallOrder(), t.blocks...)
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
