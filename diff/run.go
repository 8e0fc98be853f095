package diff

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
)

// Part is what two runs may differ in.
type Part string

// The parts of one step of a run, in the order in which they are compared.
const (
	PartReasoning Part = "reasoning"
	PartText      Part = "text" // text beside the call, of any role
	PartCall      Part = "tool-call"
	PartArguments Part = "arguments"
	PartResult    Part = "result"
)

// Run is the comparison of two runs of an agent.
type Run struct {
	Same  int     // steps that are the same in all parts, from the beginning
	Steps [2]int  // of each run
	First []Point // where each part differs for the first time, in the order of the runs
}

// Equal reports whether both runs did the same.
func (r *Run) Equal() bool { return len(r.First) == 0 }

// Point is a place where two runs differ. A side that has nothing there is empty.
type Point struct {
	Part Part
	Step int // from 1
	A, B []*commit.Commit
}

// agentStep is a tool call with its reasoning, text and result. The last of a run may have no call.
type agentStep struct {
	parts map[Part][]*commit.Commit
	call  content.ToolCall
}

// Runs compares two runs, each its blocks in order, loaded: step by step, a step
// being a tool call with the reasoning and text before it and its result. What
// comes after the first call of another tool is not compared: from there on the
// runs do different things.
func Runs(a, b []*commit.Commit) *Run {
	left, right := splitAtCalls(a), splitAtCalls(b)
	r := &Run{Steps: [2]int{len(left), len(right)}}
	found := map[Part]bool{}
	for i := range max(len(left), len(right)) {
		var x, y agentStep
		if i < len(left) {
			x = left[i]
		}
		if i < len(right) {
			y = right[i]
		}
		whole := true
		for _, part := range []Part{PartReasoning, PartText, PartCall, PartArguments, PartResult} {
			if samePart(part, x, y) {
				continue
			}
			if whole = false; !found[part] {
				found[part] = true
				r.First = append(r.First, Point{Part: part, Step: i + 1, A: x.commitsOf(part), B: y.commitsOf(part)})
			}
			if part == PartCall {
				return r
			}
		}
		if whole && len(r.First) == 0 {
			r.Same++
		}
	}
	return r
}

// commitsOf returns the commits of a part; the arguments are in the call.
func (s agentStep) commitsOf(p Part) []*commit.Commit {
	if p == PartArguments {
		p = PartCall
	}
	return s.parts[p]
}

// splitAtCalls splits blocks into steps. Each tool call ends a step, to which its results belong.
func splitAtCalls(blocks []*commit.Commit) []agentStep {
	var list []agentStep
	calls := map[string]int{}
	now := agentStep{parts: map[Part][]*commit.Commit{}}
	for _, c := range blocks {
		if c.Op != commit.Append || c.Block == nil {
			continue
		}
		switch b := c.Block.(type) {
		case content.ToolCall:
			now.parts[PartCall], now.call = []*commit.Commit{c}, b
			calls[b.CallID] = len(list)
			list, now = append(list, now), agentStep{parts: map[Part][]*commit.Commit{}}
		case content.ToolResult:
			if at, known := calls[b.CallID]; known {
				list[at].parts[PartResult] = append(list[at].parts[PartResult], c)
			}
		default:
			part := PartText
			if c.Kind == content.KindReasoning {
				part = PartReasoning
			}
			now.parts[part] = append(now.parts[part], c)
		}
	}
	if len(now.parts) > 0 {
		list = append(list, now)
	}
	return list
}

func samePart(p Part, a, b agentStep) bool {
	switch p {
	case PartCall:
		return a.call.Name == b.call.Name && len(a.parts[p]) == len(b.parts[p])
	case PartArguments:
		return sameJSON(a.call.Arguments, b.call.Arguments)
	case PartResult:
		return joinTexts(a.parts[p]) == joinTexts(b.parts[p]) && hasError(a.parts[p]) == hasError(b.parts[p])
	}
	return joinTexts(a.parts[p]) == joinTexts(b.parts[p])
}

func joinTexts(commits []*commit.Commit) string {
	var b strings.Builder
	for _, c := range commits {
		b.WriteString(c.Block.String())
		b.WriteByte(0)
	}
	return b.String()
}

func hasError(results []*commit.Commit) bool {
	for _, c := range results {
		if r, ok := c.Block.(content.ToolResult); ok && r.IsError {
			return true
		}
	}
	return false
}

// sameJSON reports whether two texts are the same JSON, or else the same text.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return parseJSON(a, &x) && parseJSON(b, &y) && reflect.DeepEqual(x, y)
}

func parseJSON(text string, v *any) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(v) == nil && !d.More()
}
