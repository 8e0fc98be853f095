package wire

import (
	"cmp"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// waiting is results that stand together. They are held back until all of them
// came, and go out in the order of their calls.
type ResultQueue struct {
	Calls     []string // ids of the last answer's calls, in order
	Results   []queuedResult
	keepOrder bool
}

// given is what came of a call, as it is sent.
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

// flush adds the results as messages of their own.
func (w *ResultQueue) Flush(to *rawjson.Array) {
	for _, v := range w.takeInOrder() {
		to.Add(v)
	}
}

// next begins an answer: what came before it is complete, and its calls are what
// the next results are for.
func (w *ResultQueue) BeginResponse(answer []content.Block, to *rawjson.Array) {
	w.Flush(to)
	w.Calls = nil
	for _, b := range answer {
		if c, ok := b.(content.ToolCall); ok && !c.Server {
			w.Calls = append(w.Calls, c.CallID)
		}
	}
}

// turns gathers blocks into messages whose roles alternate, as some formats demand.
// Results stand first in a message. Roles are those of the wire; an instruction has
// no message but a place of its own.
type MessageBuilder struct {
	ModelRole   string // the role of the model
	BlocksField string // that holds the blocks of a message

	System rawjson.Array
	List   rawjson.Array

	role       string // of the message that is being gathered
	blocks     []rawjson.Value
	results    ResultQueue
	HasResults bool   // the last message has some
	wireRole   string // of the message on the wire; empty: role
	asString   bool   // the content of the message is a string, if it is one text
}

// blockTaker is a prompt that takes one block after the other.
type BlockEncoder interface {
	Add(role content.Role, b content.Block)
	Flush()
}

// takeAll gives all blocks of messages to a prompt.
func EncodeBlocks(p BlockEncoder, messages []content.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			p.Add(m.Role, b)
		}
	}
	p.Flush()
}

// answerOf is a conversation of one answer.
func AssistantMessage(blocks []content.Block) []content.Message {
	return []content.Message{{Role: content.RoleAssistant, Blocks: blocks}}
}

// roleSystem is the role of blocks that are in no message.
const roleSystem = "system"

// roleOf is the role of the message that takes a block; empty when none does.
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

// enter goes on to the message that takes a block: to is its role, begun tells
// whether it is a new one. An instruction is put in its place at once. Where no
// message takes the block, or v, which is what is sent of it, is nil, to is empty.
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

// RenameRole gives the message that is being built another role on the wire.
func (t *MessageBuilder) RenameRole(role string) { t.wireRole = role }

// AsString makes the content of the message a string when it is one text in the end.
func (t *MessageBuilder) AsString() { t.asString = true }

// take adds a block, as it is sent, to the message that is being gathered.
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

// flush ends the message that is being gathered.
func (t *MessageBuilder) Flush() {
	if len(t.blocks)+len(t.results.Results) == 0 {
		return
	}
	t.HasResults = len(t.results.Results) > 0
	blocks := append(t.results.takeInOrder(), t.blocks...)
	body := rawjson.ArrayOf(blocks)
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
