package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindToolResult is what came of a tool call.
var KindToolResult = register(6, Traits{Name: "tool-result", Role: RoleTool, Level: priority.Normal, decode: decodeToolResult})

// ToolResult answers the [ToolCall] with the same id.
type ToolResult struct {
	Wire
	CallID  string
	Name    string // of the tool, where the dialect repeats it
	Text    string // the content, when it is text
	Parts   []byte // the content as JSON, when it is anything else
	IsError bool
	Server  bool // the provider ran the tool itself
}

// Kind is KindToolResult.
func (r ToolResult) Kind() Kind { return KindToolResult }

// String returns the content.
func (r ToolResult) String() string {
	if len(r.Parts) > 0 {
		return string(r.Parts)
	}
	return r.Text
}

func (r ToolResult) withText(text string) Block {
	r.Wire, r.Text, r.Parts = r.afterEdit(), text, nil
	return r
}

func (r ToolResult) withWire(w Wire) Block {
	r.Wire = w
	return r
}

func (r ToolResult) rewrite(by *rewriter) Block {
	by.raw(&r.Parts)
	if !by.text(&r.Text) {
		return nil
	}
	return r
}

func (r ToolResult) remains(w Wire) Block {
	return ToolResult{Wire: w, CallID: r.CallID, Name: r.Name, IsError: r.IsError, Server: r.Server}
}

func (r ToolResult) encode(e *canonical.Encoder) {
	e.String(16, r.CallID)
	e.String(17, r.Name)
	e.String(18, r.Text)
	e.Raw(19, r.Parts)
	e.Bool(20, r.IsError)
	e.Bool(21, r.Server)
}

func decodeToolResult(_ Kind, w Wire, d *canonical.Decoder) Block {
	r := ToolResult{Wire: w}
	for f := range d.Fields() {
		switch f {
		case 16:
			r.CallID = d.String()
		case 17:
			r.Name = d.String()
		case 18:
			r.Text = d.String()
		case 19:
			r.Parts = append(r.Parts, d.Raw()...)
		case 20:
			r.IsError = d.Bool()
		case 21:
			r.Server = d.Bool()
		}
	}
	return r
}
