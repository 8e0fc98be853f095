package content

// Attribution is what led to a tool call: the thoughts since the call before it.
type Attribution struct {
	Call      int   // index of the call among the blocks
	Reasoning []int // indexes of its thoughts
	Ref       int   // without thoughts of its own: index of the nearest call before it that has some; else -1
}

// Attribute reports which thoughts led to which tool call in the blocks of one
// turn, in the order of the wire. A call owns the thoughts since the call before
// it, whoever runs the tools; text and results in between do not matter. A call
// without thoughts of its own is taken to have been made beside the nearest one
// before it that has some. rest is the thoughts after the last call: they belong
// to the answer.
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
