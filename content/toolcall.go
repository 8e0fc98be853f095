package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindToolCall is a model's call of a tool.
var KindToolCall = register(5, Traits{Name: "tool-call", Role: RoleAssistant, Level: priority.Normal, decode: decodeToolCall})

// ToolCall asks for a tool. Its result is the [ToolResult] with the same id.
type ToolCall struct {
	Wire
	CallID    string
	Name      string
	Arguments string // as sent: JSON in most dialects, any text for custom tools
	Server    bool   // the provider runs the tool itself
}

// Kind returns KindToolCall.
func (c ToolCall) Kind() Kind { return KindToolCall }

// String returns the arguments.
func (c ToolCall) String() string { return c.Arguments }

func (c ToolCall) withText(text string) Block {
	f := c.Form()
	c.Wire, c.Arguments = Form{Role: f.Role, Dialect: f.Dialect, Type: f.Type}.Wire(), text
	return c
}

func (c ToolCall) withWire(w Wire) Block {
	c.Wire = w
	return c
}

func (c ToolCall) rewrite(r *rewriter) Block {
	if !r.text(&c.Arguments) {
		return nil
	}
	return c
}

func (c ToolCall) remains(w Wire) Block {
	return ToolCall{Wire: w, CallID: c.CallID, Name: c.Name, Server: c.Server}
}

// The fields of the record of a [ToolCall].
const (
	fieldCallID = firstOfKind + iota
	fieldCallName
	fieldArguments
	fieldCallServer
)

func (c ToolCall) encode(e *canonical.Encoder) {
	e.String(fieldCallID, c.CallID)
	e.String(fieldCallName, c.Name)
	e.String(fieldArguments, c.Arguments)
	e.Bool(fieldCallServer, c.Server)
}

func decodeToolCall(_ Kind, w Wire, d *canonical.Decoder) Block {
	c := ToolCall{Wire: w}
	for f := range d.Fields() {
		switch f {
		case fieldCallID:
			c.CallID = d.String()
		case fieldCallName:
			c.Name = d.String()
		case fieldArguments:
			c.Arguments = d.String()
		case fieldCallServer:
			c.Server = d.Bool()
		}
	}
	return c
}
