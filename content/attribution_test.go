package content

import (
	"reflect"
	"testing"
)

func TestAttribute(t *testing.T) {
	think, say := Reasoning{Text: "hm"}, Assistant("x")
	call, server, result := ToolCall{CallID: "1"}, ToolCall{CallID: "2", Server: true}, ToolResult{CallID: "2", Server: true}
	for _, c := range []struct {
		name   string
		blocks []Block
		calls  []Attribution
		rest   []int
	}{
		{"nothing", nil, nil, nil},
		{"an answer", []Block{think, say}, nil, []int{0}},
		{"a call without thoughts", []Block{say, call}, []Attribution{{Call: 1, Ref: -1}}, nil},
		{"two thoughts, text, a call", []Block{think, think, say, call}, []Attribution{{Call: 3, Reasoning: []int{0, 1}, Ref: -1}}, nil},
		{"parallel calls", []Block{think, call, call, call}, []Attribution{{1, []int{0}, -1}, {2, nil, 1}, {3, nil, 1}}, nil},
		{
			"interleaved with a server's tool",
			[]Block{think, server, result, think, say, call, call, think, say},
			[]Attribution{{1, []int{0}, -1}, {5, []int{3}, -1}, {6, nil, 5}},
			[]int{7},
		},
	} {
		calls, rest := Attribute(c.blocks)
		if !reflect.DeepEqual(calls, c.calls) || !reflect.DeepEqual(rest, c.rest) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, calls, rest, c.calls, c.rest)
		}
	}
}
