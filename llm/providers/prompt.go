package providers

import (
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// waiting is results that stand together. They are held back until all of them
// came, and go out in the order of their calls.
type waiting struct {
	calls   []string // ids of the last answer's calls, in order
	results []given
}

// given is what came of a call, as it is sent.
type given struct {
	id   string
	json rawjson.Value
}

func (w *waiting) add(id string, v rawjson.Value) {
	w.results = append(w.results, given{id, v})
}

// take gives up the results. Those that no call is known of come last.
func (w *waiting) take() (list []rawjson.Value) {
	place := func(r given) int {
		if i := slices.Index(w.calls, r.id); i >= 0 {
			return i
		}
		return len(w.calls)
	}
	slices.SortStableFunc(w.results, func(a, b given) int { return place(a) - place(b) })
	for _, r := range w.results {
		list = append(list, r.json)
	}
	w.results = nil
	return list
}

// flush adds the results as messages of their own.
func (w *waiting) flush(to *rawjson.Array) {
	for _, v := range w.take() {
		to.Add(v)
	}
}

// next begins an answer: what came before it is complete, and its calls are what
// the next results are for.
func (w *waiting) next(answer []content.Block, to *rawjson.Array) {
	w.flush(to)
	w.calls = nil
	for _, b := range answer {
		if c, ok := b.(content.ToolCall); ok && !c.Server {
			w.calls = append(w.calls, c.CallID)
		}
	}
}

// turns gathers blocks into messages whose roles alternate, as some formats demand.
// Results stand first in a message. Roles are those of the wire; an instruction has
// no message but a place of its own.
type turns struct {
	modelRole string // the role of the model
	member    string // that holds the blocks of a message

	system rawjson.Array
	list   rawjson.Array

	role    string // of the message that is being gathered
	blocks  []rawjson.Value
	wait    waiting
	results bool // the last message has some
}

// blockTaker is a prompt that takes one block after the other.
type blockTaker interface {
	add(role content.Role, b content.Block)
	flush()
}

// takeAll gives all blocks of messages to a prompt.
func takeAll(p blockTaker, messages []content.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			p.add(m.Role, b)
		}
	}
	p.flush()
}

// answerOf is a conversation of one answer.
func answerOf(blocks []content.Block) []content.Message {
	return []content.Message{{Role: content.RoleAssistant, Blocks: blocks}}
}

// roleSystem is the role of blocks that are in no message.
const roleSystem = "system"

// roleOf is the role of the message that takes a block; empty when none does.
func (t *turns) roleOf(role content.Role, b content.Block) string {
	if r, ok := b.(content.ToolResult); ok {
		if r.Server {
			return t.modelRole
		}
		return "user"
	}
	switch role {
	case content.RoleAssistant:
		return t.modelRole
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
func (t *turns) enter(role content.Role, b content.Block, v rawjson.Value) (to string, begun bool) {
	to = t.roleOf(role, b)
	switch {
	case v == nil || to == "":
		return "", false
	case to == roleSystem:
		t.system.Add(v)
		return "", false
	case to == t.role:
		return to, false
	}
	t.flush()
	t.role = to
	return to, true
}

// take adds a block, as it is sent, to the message that is being gathered.
func (t *turns) take(b content.Block, v rawjson.Value) {
	switch b := b.(type) {
	case content.ToolResult:
		if !b.Server {
			t.wait.add(b.CallID, v)
			return
		}
	case content.ToolCall:
		if !b.Server {
			t.wait.calls = append(t.wait.calls, b.CallID)
		}
	}
	t.blocks = append(t.blocks, v)
}

// flush ends the message that is being gathered.
func (t *turns) flush() {
	if len(t.blocks)+len(t.wait.results) == 0 {
		return
	}
	t.results = len(t.wait.results) > 0
	t.list.Add(rawjson.NewObject("role", t.role, t.member, array(append(t.wait.take(), t.blocks...))).Bytes())
	if t.blocks = nil; t.role == "user" {
		t.wait.calls = nil
	}
}
