package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// Rule is one reason for which a provider refuses a request.
type Rule struct {
	Name     string
	Evidence string // how it is known: the text of the refusal, or where it is documented
	Warns    bool   // the request is answered all the same
	Find     func(c *Checker)
}

// Checker is a request that the rules look at.
type Checker struct {
	Target
	Request  *llm.Request
	Body     rawjson.Value
	Outline  []OutlineItem
	rule     *Rule
	problems []llm.Problem
}

// OutlineItem is one item of a request body, whatever the dialect.
type OutlineItem struct {
	Kind      OutlineKind
	CallID    string // of a call or its result
	Message   int    // the index of the message that it is in
	Path      string
	JSON      rawjson.Value // the item in the body
	Empty     bool          // a text, or a message, without content
	FromModel bool          // the model said it
}

// OutlineKind is what an [OutlineItem] is.
type OutlineKind uint8

// The kinds of items.
const (
	OutlineText OutlineKind = iota
	OutlineCall
	OutlineResult
	OutlineReasoning
	OutlineOther
)

// Report adds a problem.
func (c *Checker) Report(path, callID, message string, args ...any) {
	c.problems = append(c.problems, llm.Problem{
		Rule: c.rule.Name, Path: path, CallID: callID, Message: fmt.Sprintf(message, args...), Warning: c.rule.Warns,
	})
}

// Check lists the reasons for which the provider would refuse a request: by the rules that
// all dialects have in common, and by those of its own.
func Check(t Target, req *llm.Request) []llm.Problem {
	t = t.ForSettings(req.Settings)
	body, err := rawjson.Parse(req.Body)
	if err != nil {
		return []llm.Problem{{Rule: "not-json", Message: "the request body is no JSON: " + err.Error()}}
	}
	k := &Checker{Target: t, Request: req, Body: body}
	if t.Dialect.Outline != nil {
		k.Outline = t.Dialect.Outline(body)
	}
	for _, list := range [][]Rule{CommonRules, t.Dialect.Rules} {
		for i := range list {
			k.rule = &list[i]
			k.rule.Find(k)
		}
	}
	return k.problems
}

// CommonRules are the rules of every dialect.
var CommonRules = []Rule{
	{
		Name:     "tool-result-missing",
		Evidence: `Anthropic 400: "tool_use ids were found without tool_result blocks immediately after"; OpenAI 400: "An assistant message with 'tool_calls' must be followed by tool messages"`,
		Find:     (*Checker).missingResults,
	},
	{
		Name:     "tool-call-missing",
		Evidence: `Anthropic 400: "unexpected tool_use_id found in tool_result blocks"; OpenAI 400: "No tool call found for function call output"`,
		Find:     (*Checker).reportOrphanResults,
	},
	{
		Name:     "duplicate-call-id",
		Evidence: "Anthropic 400: \"tool_use ids must be unique\"",
		Find:     (*Checker).duplicateCalls,
	},
	{
		Name:     "empty-content",
		Evidence: `Anthropic 400: "text content blocks must be non-empty"; others answer an empty message badly`,
		Find:     (*Checker).emptyContent,
	},
	{
		Name:     "seal-of-another-model",
		Evidence: "a seal is opened only by the model family that made it; it is left out, and inside a tool loop its provider may demand it",
		Warns:    true,
		Find:     (*Checker).foreignSeals,
	},
	{
		Name:     RuleCannotStop,
		Evidence: "the [table of models](#models-that-are-asked-in-another-way); one that is not in it says so in its refusal, and is asked again",
		Warns:    true,
		Find:     (*Checker).reasoningCannotStop,
	},
	{
		Name:     "not-utf8",
		Evidence: "JSON carries Unicode only: RFC 8259, section 8.1",
		Warns:    true,
		Find:     (*Checker).notUTF8,
	},
	{
		Name:     "block-not-sent",
		Evidence: "the API has no form for such a block, or takes it back only in the form that it gave it",
		Warns:    true,
		Find:     (*Checker).unsentBlocks,
	},
}

// RuleCannotStop is the rule for a model that reasons although it is asked not to.
const RuleCannotStop = "reasoning-cannot-stop"

func (c *Checker) reasoningCannotStop() {
	s := c.OffRule()
	if !IsReasoningOff(c.Request.Settings.Reasoning) || !s.StillReasons {
		return
	}
	instead := "nothing is sent to ask for it"
	if s.Effort != "" {
		instead = "the least that it takes is asked for: " + s.Effort
	}
	c.Report("", "", "%s cannot be asked not to reason; %s", c.Model, instead)
}

// missingResults finds calls without a result before the next message of the model.
func (c *Checker) missingResults() {
	var open []OutlineItem
	report := func() {
		for _, call := range open {
			c.Report(call.Path, call.CallID, "the tool call %s has no result right after it", call.CallID)
		}
		open = nil
	}
	for _, s := range c.Outline {
		switch {
		case s.Kind == OutlineCall:
			if len(open) > 0 && open[0].Message != s.Message {
				report()
			}
			open = append(open, s)
		case s.Kind == OutlineResult:
			for i := range open {
				if open[i].CallID == s.CallID {
					open = append(open[:i:i], open[i+1:]...)
					break
				}
			}
		case len(open) > 0 && s.Message != open[0].Message && s.FromModel:
			report()
		}
	}
	report()
}

func (c *Checker) reportOrphanResults() {
	open := map[string]bool{}
	for _, s := range c.Outline {
		switch {
		case s.Kind == OutlineCall:
			open[s.CallID] = true
		case s.Kind == OutlineResult && !open[s.CallID]:
			c.Report(s.Path, s.CallID, "the tool result %s has no call before it, or is the second", s.CallID)
		case s.Kind == OutlineResult:
			delete(open, s.CallID)
		}
	}
}

func (c *Checker) duplicateCalls() {
	seen := map[string]bool{}
	for _, s := range c.Outline {
		if s.Kind != OutlineCall {
			continue
		}
		if seen[s.CallID] {
			c.Report(s.Path, s.CallID, "the id %s is that of an earlier call too", s.CallID)
		}
		seen[s.CallID] = true
	}
}

func (c *Checker) emptyContent() {
	for _, s := range c.Outline {
		if s.Empty {
			c.Report(s.Path, s.CallID, "there is nothing in it")
		}
	}
}

// foreignSeals finds blocks of the open turn whose seal is not sent. Closed turns do
// without their seals.
func (c *Checker) foreignSeals() {
	for i := OpenTurnStart(c.Request.Messages); i < len(c.Request.Messages); i++ {
		for j, b := range c.Request.Messages[i].Blocks {
			seal := b.Form().Seal
			if seal.Data != "" && !c.CanOpen(seal) {
				c.reportBlock(i, j, "a %s was sealed by %s and is sent without its seal", b.Kind(), seal.Minted)
			}
		}
	}
}

// reportBlock adds a problem of one block of the request.
func (c *Checker) reportBlock(message, block int, text string, args ...any) {
	c.Report("", callIDOf(c.Request.Messages[message].Blocks[block]), text, args...)
	c.problems[len(c.problems)-1].Block = llm.Place{Message: message + 1, Block: block + 1}
}

func callIDOf(b content.Block) string {
	if call, ok := b.(content.ToolCall); ok {
		return call.CallID
	}
	return ""
}

// OpenTurnStart returns the index of the first message of the open turn: after the last
// message of the user, results of tools apart. A tool loop is open when this turn has a
// tool call.
func OpenTurnStart(messages []content.Message) int {
	return openTurnStart(len(messages), func(i int) bool { return messages[i].Role == content.RoleUser })
}

// openTurnStart returns the index after the last of n elements that the user said.
func openTurnStart(n int, byUser func(i int) bool) int {
	for n > 0 && !byUser(n-1) {
		n--
	}
	return n
}

func (c *Checker) notUTF8() {
	for i, m := range c.Request.Messages {
		for j, b := range m.Blocks {
			if _, media := b.(content.Media); !media && !rawjson.Clean(b.String()) {
				c.reportBlock(i, j, "a %s block is not UTF-8: U+FFFD is sent for what JSON cannot carry", b.Kind())
			}
		}
	}
}

// unsentBlocks finds blocks that the dialect has no form for. The first of a kind stands
// for all of them.
func (c *Checker) unsentBlocks() {
	var kinds []content.Kind
	places := map[content.Kind][]llm.Place{}
	for i, m := range c.Request.Messages {
		for j, b := range m.Blocks {
			k := b.Kind()
			if c.sends(m.Role, b) {
				continue
			}
			if places[k] == nil {
				kinds = append(kinds, k)
			}
			places[k] = append(places[k], llm.Place{Message: i, Block: j})
		}
	}
	for _, k := range kinds {
		more := ""
		if n := len(places[k]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more of this kind)", n)
		}
		at := places[k][0]
		c.reportBlock(at.Message, at.Block, "the %s block is not sent: the %s API does not take it%s", k, c.Dialect.Name, more)
	}
}

// sends reports whether the dialect sends a block in a message of a role: whether the body
// with the block differs from the body without it.
func (c *Checker) sends(role content.Role, b content.Block) bool {
	if c.Owns(b) {
		return true // the dialect made it
	}
	switch b := b.(type) {
	case content.Text:
		if role != content.NoRole && !b.Kind().Traits().Private {
			return true
		}
	case content.Reasoning:
		if strings.TrimSpace(b.String()) == "" {
			return true // there is nothing in it for others
		}
	case content.ToolCall:
		if !b.Server && role == content.RoleAssistant {
			return true
		}
	case content.ToolResult:
		if !b.Server && role != content.RoleAssistant {
			return true
		}
	}
	text := content.User("x") // some send no message without a word
	with := c.encodeMessage(role, b, text)
	// A text alone may be sent in a shorter form than one beside another block, be that
	// sent or not. No dialect sends a native block without JSON.
	return !bytes.Equal(with, c.encodeMessage(role, text)) && !bytes.Equal(with, c.encodeMessage(role, content.Native{}, text))
}

// encodeMessage returns the body of a request with one message.
func (c *Checker) encodeMessage(role content.Role, blocks ...content.Block) []byte {
	body, _ := c.Encode(&llm.Request{
		Messages: []content.Message{{Role: role, Blocks: blocks}},
		Settings: llm.Settings{Reasoning: llm.Reasoning{Native: c.Request.Settings.Reasoning.Native}},
	})
	return body
}

// CallCounter names calls that have no ids, by the name of the tool and their order.
type CallCounter map[string]int

// Next returns the id of the next call of a tool.
func (c CallCounter) Next(name string) string {
	c[name]++
	return fmt.Sprintf("%s #%d", name, c[name])
}

// OutlineParts returns the outline of a body whose messages are lists of parts. read fills
// in the item of one part.
func OutlineParts(body rawjson.Value, messages, member, model string, read func(s *OutlineItem)) []OutlineItem {
	var list []OutlineItem
	for i, m := range rawjson.Indexed(body.Get(messages)) {
		byModel := m.Get("role").Text() == model
		parts := m.Get(member)
		if parts.Kind() != rawjson.KindArray || parts.At(0) == nil {
			list = append(list, OutlineItem{Message: i, Path: fmt.Sprintf("%s[%d]", messages, i), JSON: m, Empty: IsBlankContent(parts), FromModel: byModel})
		}
		for j, part := range rawjson.Indexed(parts) {
			s := OutlineItem{Kind: OutlineOther, Message: i, Path: fmt.Sprintf("%s[%d].%s[%d]", messages, i, member, j), JSON: part, FromModel: byModel}
			read(&s)
			list = append(list, s)
		}
	}
	return list
}

// OutlineMessages returns the outline of a body whose messages have their calls in a list
// beside their content, and whose results are messages. callID and resultID return the id
// of a call and of the call of a result; a message without calls is empty when all of the
// fields are.
func OutlineMessages(body rawjson.Value, callID, resultID func(v rawjson.Value) string, fields ...string) []OutlineItem {
	var list []OutlineItem
	for i, m := range rawjson.Indexed(body.Get("messages")) {
		role, calls := m.Get("role").Text(), m.Get("tool_calls")
		s := OutlineItem{Message: i, Path: fmt.Sprintf("messages[%d]", i), JSON: m, FromModel: role == "assistant"}
		if role == "tool" {
			s.Kind, s.CallID = OutlineResult, resultID(m)
			list = append(list, s)
			continue
		}
		for j, call := range rawjson.Indexed(calls) {
			list = append(list, OutlineItem{Kind: OutlineCall, CallID: callID(call), Message: i, Path: fmt.Sprintf("%s.tool_calls[%d]", s.Path, j), JSON: call, FromModel: true})
		}
		if calls.At(0) == nil {
			s.Empty = !slices.ContainsFunc(fields, func(field string) bool { return !IsBlankContent(m.Get(field)) })
			list = append(list, s)
		}
	}
	return list
}

// OutlineItems returns the outline of a body that is a list of items, without messages
// around them: consecutive items of one side are one message. read fills in one item.
func OutlineItems(body rawjson.Value, member string, read func(s *OutlineItem)) []OutlineItem {
	var list []OutlineItem
	group, before := 0, ""
	for i, item := range rawjson.Indexed(body.Get(member)) {
		s := OutlineItem{Kind: OutlineOther, Path: fmt.Sprintf("%s[%d]", member, i), JSON: item, FromModel: true}
		read(&s)
		side := "user"
		if s.Kind == OutlineResult {
			side = "tool"
		} else if s.FromModel {
			side = "model"
		}
		if side != before {
			group, before = group+1, side
		}
		s.Message = group
		list = append(list, s)
	}
	return list
}

// RequireMessages returns the rule that a request has something beside an instruction.
func RequireMessages(name, evidence, member string) Rule {
	return Rule{Name: name, Evidence: evidence, Find: func(c *Checker) {
		if len(c.Outline) == 0 {
			c.Report(member, "", "there is no message: an instruction alone is not answered")
		}
	}}
}

// RequireUserFirst returns the rule that the first message is the user's.
func RequireUserFirst(evidence string) Rule {
	return Rule{Name: "first-message", Evidence: evidence, Find: func(c *Checker) {
		if len(c.Outline) == 0 {
			c.Report("messages", "", "there is no message: an instruction alone is not answered")
		} else if c.Outline[0].FromModel {
			c.Report(c.Outline[0].Path, "", "the first message is the model's; one of the user must come before it")
		}
	}}
}

// OpenTurnStart is [OpenTurnStart] for the outline.
func (c *Checker) OpenTurnStart() int {
	return openTurnStart(len(c.Outline), func(i int) bool {
		return !c.Outline[i].FromModel && c.Outline[i].Kind != OutlineResult
	})
}

// IsBlankContent reports whether a content is missing, null, "" or []; objects are never
// blank.
func IsBlankContent(v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.KindString:
		return v.Text() == ""
	case rawjson.KindArray:
		for range v.Elements() {
			return false
		}
	}
	return v.Kind() != rawjson.KindObject
}
