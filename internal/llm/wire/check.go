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

// How a request is checked before it is sent.
//
// Providers refuse requests for reasons that do not depend on the dialect, such as a call
// without a result. To check these once for all dialects, Dialect.Outline turns a request body
// into a list of items: texts, calls, results and reasoning, each with its message and its
// path in the body. Each Rule then looks at the outline, at the body, or at the blocks of the
// request, and reports problems. CommonRules apply to all dialects; a dialect adds its own
// rules. Every rule gives evidence: the text of a refusal or the page that documents it.

// Rule finds one kind of problem for which a provider refuses a request.
type Rule struct {
	Name     string
	Evidence string // the text of the refusal, or where the rule is documented
	Warns    bool   // the provider answers the request anyway
	Find     func(c *Checker)
}

// Checker holds a request for the rules to check.
type Checker struct {
	Target
	Request  *llm.Request
	Body     rawjson.Value
	Outline  []OutlineItem
	rule     *Rule
	problems []llm.Problem
}

// OutlineItem is one item of a request body, in a form that all dialects share.
type OutlineItem struct {
	Kind      OutlineKind
	CallID    string // the call id of a call or a result
	Message   int    // the index of the message that has the item
	Path      string
	JSON      rawjson.Value // the item in the body
	Empty     bool          // the item is a text or a message without content
	FromModel bool          // the model made the item
}

// OutlineKind is the kind of an [OutlineItem].
type OutlineKind uint8

// The kinds of items.
const (
	OutlineText OutlineKind = iota
	OutlineCall
	OutlineResult
	OutlineReasoning
	OutlineOther
)

// Report adds a problem of the current rule.
func (c *Checker) Report(path, callID, message string, args ...any) {
	c.problems = append(c.problems, llm.Problem{
		Rule: c.rule.Name, Path: path, CallID: callID, Message: fmt.Sprintf(message, args...), Warning: c.rule.Warns,
	})
}

// Check returns the reasons why the provider would refuse a request. It applies CommonRules
// and the rules of the dialect.
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
		Find:     (*Checker).findMissingResults,
	},
	{
		Name:     "tool-call-missing",
		Evidence: `Anthropic 400: "unexpected tool_use_id found in tool_result blocks"; OpenAI 400: "No tool call found for function call output"`,
		Find:     (*Checker).findOrphanResults,
	},
	{
		Name:     "duplicate-call-id",
		Evidence: "Anthropic 400: \"tool_use ids must be unique\"",
		Find:     (*Checker).findDuplicateCalls,
	},
	{
		Name:     "empty-content",
		Evidence: `Anthropic 400: "text content blocks must be non-empty"; others answer an empty message badly`,
		Find:     (*Checker).findEmptyContent,
	},
	{
		Name:     "seal-of-another-model",
		Evidence: "a seal is opened only by the model family that made it; it is left out, and inside a tool loop its provider may demand it",
		Warns:    true,
		Find:     (*Checker).findUnsentSeals,
	},
	{
		Name:     RuleCannotStop,
		Evidence: "the [table of models](#models-that-are-asked-in-another-way); one that is not in it says so in its refusal, and is asked again",
		Warns:    true,
		Find:     (*Checker).findReasoningCannotStop,
	},
	{
		Name:     "not-utf8",
		Evidence: "JSON carries Unicode only: RFC 8259, section 8.1",
		Warns:    true,
		Find:     (*Checker).findInvalidUTF8,
	},
	{
		Name:     "block-not-sent",
		Evidence: "the API has no form for such a block, or takes it back only in the form that it gave it",
		Warns:    true,
		Find:     (*Checker).findUnsentBlocks,
	},
}

// RuleCannotStop is the name of the rule for a model that reasons although the request turns
// reasoning off.
const RuleCannotStop = "reasoning-cannot-stop"

// findReasoningCannotStop reports a request that turns reasoning off for a model that always
// reasons.
func (c *Checker) findReasoningCannotStop() {
	s := c.OffRule()
	if !IsReasoningOff(c.Request.Settings.Reasoning) || !s.StillReasons {
		return
	}
	instead := "the request does not mention it"
	if s.Effort != "" {
		instead = "its lowest effort is requested: " + s.Effort
	}
	c.Report("", "", "%s cannot turn reasoning off; %s", c.Model, instead)
}

// findMissingResults reports calls that have no result before the next message of the model.
func (c *Checker) findMissingResults() {
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

// findOrphanResults reports results without a call before them, and second results of a call.
func (c *Checker) findOrphanResults() {
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

// findDuplicateCalls reports calls that have the id of an earlier call.
func (c *Checker) findDuplicateCalls() {
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

// findEmptyContent reports texts and messages without content.
func (c *Checker) findEmptyContent() {
	for _, s := range c.Outline {
		if s.Empty {
			c.Report(s.Path, s.CallID, "there is nothing in it")
		}
	}
}

// findUnsentSeals reports blocks of the open turn whose seal is not sent. Closed turns need
// no seals.
func (c *Checker) findUnsentSeals() {
	for i := OpenTurnStart(c.Request.Messages); i < len(c.Request.Messages); i++ {
		for j, b := range c.Request.Messages[i].Blocks {
			seal := b.Form().Seal
			if seal.Data != "" && !c.CanOpen(seal) {
				c.reportBlock(i, j, "a %s was sealed by %s and is sent without its seal", b.Kind(), seal.Minted)
			}
		}
	}
}

// reportBlock adds a problem of one block of the request, given by the index of its message
// and its index there.
func (c *Checker) reportBlock(message, block int, text string, args ...any) {
	call, _ := c.Request.Messages[message].Blocks[block].(content.ToolCall)
	c.Report("", call.CallID, text, args...)
	c.problems[len(c.problems)-1].Block = llm.Place{Message: message + 1, Block: block + 1}
}

// OpenTurnStart returns the index of the first message of the open turn, which is the message
// after the last user message. Tool results are not user messages here. If the open turn has
// a tool call, a tool loop is open.
func OpenTurnStart(messages []content.Message) int {
	return openTurnStart(len(messages), func(i int) bool { return messages[i].Role == content.RoleUser })
}

// openTurnStart returns the index after the last of n elements for which byUser is true.
func openTurnStart(n int, byUser func(i int) bool) int {
	for n > 0 && !byUser(n-1) {
		n--
	}
	return n
}

// findInvalidUTF8 reports blocks whose text is not valid UTF-8.
func (c *Checker) findInvalidUTF8() {
	for i, m := range c.Request.Messages {
		for j, b := range m.Blocks {
			if _, media := b.(content.Media); !media && !rawjson.Clean(b.String()) {
				c.reportBlock(i, j, "a %s block is not UTF-8: U+FFFD is sent for what JSON cannot carry", b.Kind())
			}
		}
	}
}

// findUnsentBlocks reports blocks that the dialect cannot send: one problem for each kind, at
// the first block of that kind.
func (c *Checker) findUnsentBlocks() {
	var kinds []content.Kind
	places := map[content.Kind][]llm.Place{}
	for i, m := range c.Request.Messages {
		for j, b := range m.Blocks {
			k := b.Kind()
			if c.isSent(m.Role, b) {
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

// isSent reports whether the dialect sends a block in a message of a role. If that does not
// follow from the kind of the block, isSent encodes a request with the block and one without
// it, and compares the two.
func (c *Checker) isSent(role content.Role, b content.Block) bool {
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
			return true // blank reasoning has nothing to send
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
	text := content.User("x") // some dialects send no message without text
	with := c.encodeRequestWith(role, b, text)
	// A dialect may encode a text alone in a shorter form than a text with another block, even
	// if that block is not sent. So the body is also compared with one that has an empty
	// native block, which no dialect sends.
	return !bytes.Equal(with, c.encodeRequestWith(role, text)) && !bytes.Equal(with, c.encodeRequestWith(role, content.Native{}, text))
}

// encodeRequestWith returns the body of a request whose only message has the given blocks.
func (c *Checker) encodeRequestWith(role content.Role, blocks ...content.Block) []byte {
	body, _ := c.Encode(&llm.Request{
		Messages: []content.Message{{Role: role, Blocks: blocks}},
		Settings: llm.Settings{Reasoning: llm.Reasoning{Native: c.Request.Settings.Reasoning.Native}},
	})
	return body
}

// CallCounter makes ids for calls without one, from the name of the tool and a counter.
type CallCounter map[string]int

// Next returns the id of the next call of a tool.
func (c CallCounter) Next(name string) string {
	c[name]++
	return fmt.Sprintf("%s #%d", name, c[name])
}

// OutlineParts returns the outline of a body whose messages are lists of parts: messages is the
// member with the messages, member the one with the parts, and model the role of the model.
// read completes the item of one part.
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

// OutlineMessages returns the outline of a body whose messages have a list of calls beside
// their content, and whose results are messages. callID returns the id of a call; resultID
// returns the call id of a result. A message without calls is empty if all of fields are
// blank.
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

// OutlineItems returns the outline of a body that is a list of items without messages.
// Consecutive items of the user, of the model, or of tool results count as one message. read
// completes one item.
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

// RequireMessages returns the rule that a request has a message besides its instructions.
func RequireMessages(name, evidence, member string) Rule {
	return Rule{Name: name, Evidence: evidence, Find: func(c *Checker) {
		if len(c.Outline) == 0 {
			c.Report(member, "", "there is no message: an instruction alone is not answered")
		}
	}}
}

// RequireUserFirst returns the rule that the first message is a user message.
func RequireUserFirst(evidence string) Rule {
	return Rule{Name: "first-message", Evidence: evidence, Find: func(c *Checker) {
		if len(c.Outline) == 0 {
			c.Report("messages", "", "there is no message: an instruction alone is not answered")
		} else if c.Outline[0].FromModel {
			c.Report(c.Outline[0].Path, "", "the first message is the model's; one of the user must come before it")
		}
	}}
}

// OpenTurnStart returns the index of the first item of the open turn in the outline; see the
// function [OpenTurnStart].
func (c *Checker) OpenTurnStart() int {
	return openTurnStart(len(c.Outline), func(i int) bool {
		return !c.Outline[i].FromModel && c.Outline[i].Kind != OutlineResult
	})
}

// IsBlankContent reports whether v is anything but a string that is not empty, a list that is
// not empty, or an object.
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
