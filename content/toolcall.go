package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindToolCall is a model's call of a tool.
var KindToolCall = register(5, Traits{Name: "tool-call", Role: RoleAssistant, Level: priority.Normal, empty: ToolCall{}})

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

func (c ToolCall) withEditedText(text string) Block {
	f := c.Form()
	c.Wire, c.Arguments = Form{Role: f.Role, Dialect: f.Dialect, Type: f.Type}.Wire(), text
	return c
}

func (c ToolCall) withWire(w Wire) Block {
	c.Wire = w
	return c
}

func (c ToolCall) rewriteOutsideForm(r rewriter) Block {
	r.rewrite(&c.Arguments)
	return c
}

func (c ToolCall) afterPurge(w Wire) Block {
	return ToolCall{Wire: w, CallID: c.CallID, Name: c.Name, Server: c.Server}
}

// The fields of the record of a [ToolCall].
const (
	fieldCallID = firstOfKind + iota
	fieldCallName
	fieldArguments
	fieldCallServer
)

func (c ToolCall) fieldsOfKind(r *canonical.Record) Block {
	r.String(fieldCallID, &c.CallID)
	r.String(fieldCallName, &c.Name)
	r.String(fieldArguments, &c.Arguments)
	r.Bool(fieldCallServer, &c.Server)
	return c
}
