package content

import (
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// KindToolResult is the result of a tool call.
var KindToolResult = register(6, Traits{Name: "tool-result", Role: RoleTool, Level: priority.Normal, empty: ToolResult{}})

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

// Kind returns KindToolResult.
func (r ToolResult) Kind() Kind { return KindToolResult }

// String returns the content.
func (r ToolResult) String() string {
	if len(r.Parts) > 0 {
		return string(r.Parts)
	}
	return r.Text
}

func (r ToolResult) withEditedText(text string) Block {
	r.Wire, r.Text, r.Parts = r.afterEdit(), text, nil
	return r
}

func (r ToolResult) withWire(w Wire) Block {
	r.Wire = w
	return r
}

func (r ToolResult) rewriteOutsideForm(by rewriter) Block {
	by.rewriteBytes(&r.Parts)
	by.rewrite(&r.Text)
	return r
}

func (r ToolResult) afterPurge(w Wire) Block {
	return ToolResult{Wire: w, CallID: r.CallID, Name: r.Name, IsError: r.IsError, Server: r.Server}
}

// The fields of the record of a [ToolResult].
const (
	fieldResultCallID = firstOfKind + iota
	fieldResultName
	fieldResultText
	fieldResultParts
	fieldIsError
	fieldResultServer
)

func (r ToolResult) fieldsOfKind(record *canonical.Record) Block {
	record.String(fieldResultCallID, &r.CallID)
	record.String(fieldResultName, &r.Name)
	record.String(fieldResultText, &r.Text)
	record.Raw(fieldResultParts, &r.Parts)
	record.Bool(fieldIsError, &r.IsError)
	record.Bool(fieldResultServer, &r.Server)
	return r
}
