package content

// CallIDOf returns the id of the tool call that a block is or answers; empty for any other block.
func CallIDOf(b Block) string {
	switch b := b.(type) {
	case ToolCall:
		return b.CallID
	case ToolResult:
		return b.CallID
	}
	return ""
}

// Attribution is the reasoning that led to a tool call: that since the call before it.
type Attribution struct {
	Call      int   // index of the call among the blocks
	Reasoning []int // indexes of its reasoning
	Ref       int   // without reasoning of its own: index of the nearest call before it that has some; else -1
}

// Attribute returns which reasoning led to which tool call in the blocks of one turn, in
// the order of the wire. A call owns the reasoning since the call before it, whether the
// client or the provider runs the tools; text and results in between do not matter. A call
// without reasoning of its own refers to the nearest call before it that has some. rest is
// the reasoning after the last call, which belongs to the answer.
func Attribute(blocks []Block) (calls []Attribution, rest []int) {
	ref := -1
	for i, b := range blocks {
		switch b.Kind() {
		case KindReasoning:
			rest = append(rest, i)
		case KindToolCall:
			o := Attribution{Call: i, Reasoning: rest, Ref: -1}
			if len(rest) > 0 {
				ref = i
			} else {
				o.Ref = ref
			}
			calls, rest = append(calls, o), nil
		}
	}
	return calls, rest
}
