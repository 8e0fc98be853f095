package providers

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// rule is one thing that a provider refuses a request for.
type rule struct {
	name     string
	evidence string // how it is known: the provider's words, or where they stand
	warns    bool   // the request is answered all the same
	find     func(c *checking)
}

// checking is a request that rules look at.
type checking struct {
	target
	req      *llm.Request
	body     rawjson.Value
	said     []said
	rule     *rule
	problems []llm.Problem
}

// said is one thing that a request body says, whatever the dialect.
type said struct {
	what  saidWhat
	id    string // of a call or its result
	group int    // the message it is in
	path  string
	empty bool // a text, or a message, in which there is nothing
	model bool // the model says it
}

type saidWhat uint8

const (
	saidText saidWhat = iota
	saidCall
	saidResult
	saidThought
	saidOther
)

// found notes a problem.
func (c *checking) found(path, callID, message string, args ...any) {
	c.problems = append(c.problems, llm.Problem{
		Rule: c.rule.name, Path: path, CallID: callID, Message: fmt.Sprintf(message, args...), Warning: c.rule.warns,
	})
}

// check lists what the provider of a target would refuse a request for: by the rules
// that all dialects have in common, and by those of its own.
func check(t target, req *llm.Request) []llm.Problem {
	t = t.asked(req.Settings)
	body, err := rawjson.Parse(req.Body)
	if err != nil {
		return []llm.Problem{{Rule: "not-json", Message: "the request body is no JSON: " + err.Error()}}
	}
	k := &checking{target: t, req: req, body: body}
	if t.dialect.outline != nil {
		k.said = t.dialect.outline(body)
	}
	for _, list := range [][]rule{commonRules, t.dialect.rules} {
		for i := range list {
			k.rule = &list[i]
			k.rule.find(k)
		}
	}
	return k.problems
}

// commonRules hold for every dialect.
var commonRules = []rule{
	{
		name:     "tool-result-missing",
		evidence: `Anthropic 400: "tool_use ids were found without tool_result blocks immediately after"; OpenAI 400: "An assistant message with 'tool_calls' must be followed by tool messages"`,
		find:     (*checking).resultsMissing,
	},
	{
		name:     "tool-call-missing",
		evidence: `Anthropic 400: "unexpected tool_use_id found in tool_result blocks"; OpenAI 400: "No tool call found for function call output"`,
		find:     (*checking).callsMissing,
	},
	{
		name:     "duplicate-call-id",
		evidence: "Anthropic 400: \"tool_use ids must be unique\"",
		find:     (*checking).callsTwice,
	},
	{
		name:     "empty-content",
		evidence: `Anthropic 400: "text content blocks must be non-empty"; others answer an empty message badly`,
		find:     (*checking).emptyOnes,
	},
	{
		name:     "seal-of-another-model",
		evidence: "a seal is opened only by the model family that made it; it is left out, and inside a tool loop its provider may demand it",
		warns:    true,
		find:     (*checking).foreignSeals,
	},
	{
		name:     ruleCannotStop,
		evidence: "the [table of models](#models-that-are-asked-in-another-way); one that is not in it says so in its refusal, and is asked again",
		warns:    true,
		find:     (*checking).cannotStop,
	},
	{
		name:     "not-utf8",
		evidence: "JSON carries Unicode only: RFC 8259, section 8.1",
		warns:    true,
		find:     (*checking).notUTF8,
	},
	{
		name:     "block-not-sent",
		evidence: "the API has no form for such a block, or takes it back only in the form that it gave it",
		warns:    true,
		find:     (*checking).notSent,
	},
}

// ruleCannotStop is the rule of a model that reasons although it is asked not to.
const ruleCannotStop = "reasoning-cannot-stop"

func (c *checking) cannotStop() {
	s := c.stop()
	if !isOff(c.req.Settings.Reasoning) || !s.reasons {
		return
	}
	instead := "nothing is sent to ask for it"
	if s.least != "" {
		instead = "the least that it takes is asked for: " + s.least
	}
	c.found("", "", "%s cannot be asked not to reason; %s", c.model, instead)
}

// resultsMissing: after a message with calls come their results, before anything
// else.
func (c *checking) resultsMissing() {
	var open []said
	report := func() {
		for _, call := range open {
			c.found(call.path, call.id, "the tool call %s has no result right after it", call.id)
		}
		open = nil
	}
	for _, s := range c.said {
		switch {
		case s.what == saidCall:
			if len(open) > 0 && open[0].group != s.group {
				report()
			}
			open = append(open, s)
		case s.what == saidResult:
			for i := range open {
				if open[i].id == s.id {
					open = append(open[:i:i], open[i+1:]...)
					break
				}
			}
		case len(open) > 0 && s.group != open[0].group && s.model:
			report()
		}
	}
	report()
}

func (c *checking) callsMissing() {
	open := map[string]bool{}
	for _, s := range c.said {
		switch {
		case s.what == saidCall:
			open[s.id] = true
		case s.what == saidResult && !open[s.id]:
			c.found(s.path, s.id, "the tool result %s has no call before it, or is the second", s.id)
		case s.what == saidResult:
			delete(open, s.id)
		}
	}
}

func (c *checking) callsTwice() {
	seen := map[string]bool{}
	for _, s := range c.said {
		if s.what != saidCall {
			continue
		}
		if seen[s.id] {
			c.found(s.path, s.id, "the id %s is that of an earlier call too", s.id)
		}
		seen[s.id] = true
	}
}

func (c *checking) emptyOnes() {
	for _, s := range c.said {
		if s.empty {
			c.found(s.path, s.id, "there is nothing in it")
		}
	}
}

// foreignSeals looks at the open turn: elsewhere nobody misses them.
func (c *checking) foreignSeals() {
	for i := openFrom(c.req.Messages); i < len(c.req.Messages); i++ {
		for j, b := range c.req.Messages[i].Blocks {
			seal := b.Form().Seal
			if seal.Data != "" && !c.opens(seal) {
				c.foundBlock(i, j, "a %s was sealed by %s and is sent without its seal", b.Kind(), seal.Minted)
			}
		}
	}
}

// foundBlock notes a problem of one block of the request.
func (c *checking) foundBlock(message, block int, text string, args ...any) {
	c.found("", callID(c.req.Messages[message].Blocks[block]), text, args...)
	c.problems[len(c.problems)-1].Block = llm.Place{Message: message + 1, Block: block + 1}
}

func callID(b content.Block) string {
	if call, ok := b.(content.ToolCall); ok {
		return call.CallID
	}
	return ""
}

// openFrom is where the last turn begins: after the last message of the user
// that is not only tool results.
func openFrom(messages []content.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == content.RoleUser {
			return i + 1
		}
	}
	return 0
}

func (c *checking) notUTF8() {
	for i, m := range c.req.Messages {
		for j, b := range m.Blocks {
			if _, media := b.(content.Media); !media && !rawjson.Clean(b.String()) {
				c.foundBlock(i, j, "a %s block is not UTF-8: U+FFFD is sent for what JSON cannot carry", b.Kind())
			}
		}
	}
}

// notSent looks for blocks that the request says nothing of. The first of a kind stands
// for all of them.
func (c *checking) notSent() {
	var kinds []content.Kind
	places := map[content.Kind][]llm.Place{}
	for i, m := range c.req.Messages {
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
		c.foundBlock(at.Message, at.Block, "the %s block is not sent: the %s API does not take it%s", k, c.dialect.name, more)
	}
}

// sends reports whether the dialect sends a block of a message of a role: whether a
// request with it is another than one without it.
func (c *checking) sends(role content.Role, b content.Block) bool {
	if c.own(b) {
		return true // the dialect made it
	}
	switch b := b.(type) {
	case content.Text:
		if role != content.NoRole && b.Kind() != content.KindNote {
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
	with := c.bodyOf(role, b, text)
	// A text alone may be sent in a shorter form than one beside another block, be that
	// sent or not. No dialect sends a native block without JSON.
	return !bytes.Equal(with, c.bodyOf(role, text)) && !bytes.Equal(with, c.bodyOf(role, content.Native{}, text))
}

// bodyOf is the body of a request with one message.
func (c *checking) bodyOf(role content.Role, blocks ...content.Block) []byte {
	body, _ := c.encode(&llm.Request{
		Messages: []content.Message{{Role: role, Blocks: blocks}},
		Settings: llm.Settings{Reasoning: llm.Reasoning{Native: c.req.Settings.Reasoning.Native}},
	})
	return body
}

// at writes a place in a body: at("messages", 2, "content", 0) is
// messages[2].content[0].
func at(steps ...any) string {
	path := ""
	for _, s := range steps {
		switch s := s.(type) {
		case int:
			path += fmt.Sprintf("[%d]", s)
		case string:
			if path != "" {
				path += "."
			}
			path += s
		}
	}
	return path
}

// counter tells calls apart that have no ids: by name and order.
type counter map[string]int

func (c counter) next(name string) string {
	c[name]++
	return fmt.Sprintf("%s #%d", name, c[name])
}

// outlineParts says what a body says whose messages are lists of parts: what is
// said of a part is told by read.
func outlineParts(body rawjson.Value, messages, member, model string, read func(part rawjson.Value, s *said)) []said {
	var list []said
	for i, m := range numbered(body.Get(messages)) {
		byModel := m.Get("role").Text() == model
		parts := m.Get(member)
		if parts.Kind() != rawjson.KindArray || parts.At(0) == nil {
			list = append(list, said{group: i, path: at(messages, i), empty: isBlank(parts), model: byModel})
		}
		for j, part := range numbered(parts) {
			s := said{what: saidOther, group: i, path: at(messages, i, member, j), model: byModel}
			read(part, &s)
			list = append(list, s)
		}
	}
	return list
}

// mustSay is the rule that a request says something beside an instruction.
func mustSay(name, evidence, member string) rule {
	return rule{name: name, evidence: evidence, find: func(c *checking) {
		if len(c.said) == 0 {
			c.found(member, "", "there is no message: an instruction alone is not answered")
		}
	}}
}

// userFirst is the rule that the first message is the user's.
func userFirst(evidence string) rule {
	return rule{name: "first-message", evidence: evidence, find: func(c *checking) {
		if len(c.said) == 0 {
			c.found("messages", "", "there is no message: an instruction alone is not answered")
		} else if c.said[0].model {
			c.found(c.said[0].path, "", "the first message is the model's; one of the user must come before it")
		}
	}}
}

// openTurn is where the last turn begins in what a body says: after the last thing
// that the user said.
func (c *checking) openTurn() (from int) {
	for i, s := range c.said {
		if !s.model && s.what != saidResult {
			from = i + 1
		}
	}
	return from
}

// isBlank tells whether content says nothing: it is missing, null, "" or [].
func isBlank(v rawjson.Value) bool {
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
