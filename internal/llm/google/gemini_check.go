package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineGeminiContents returns the outline of the contents of a request body. Calls need no ids;
// calls and results without one are matched by name and order.
func outlineGeminiContents(body rawjson.Value) []wire.OutlineItem {
	made, answered := wire.CallCounter{}, wire.CallCounter{}
	name := func(v rawjson.Value, counted wire.CallCounter) string {
		if id := v.Get("id").Text(); id != "" {
			return id
		}
		return counted.Next(v.Get("name").Text())
	}
	return wire.OutlineParts(body, "contents", "parts", "model", func(s *wire.OutlineItem) {
		switch part := s.JSON; {
		case part.Get("functionCall") != nil:
			s.Kind, s.CallID = wire.OutlineCall, name(part.Get("functionCall"), made)
		case part.Get("functionResponse") != nil:
			s.Kind, s.CallID = wire.OutlineResult, name(part.Get("functionResponse"), answered)
		case part.Get("thought").Bool():
			s.Kind = wire.OutlineReasoning
		case part.Get("text") != nil:
			s.Kind = wire.OutlineText
		}
	})
}

// geminiRules are the rules for requests that generateContent refuses.
var geminiRules = []wire.Rule{
	{
		Name:     "thought-signature-missing",
		Evidence: `Gemini 400: "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly" (Gemini 3: the first call of each step of the current turn)`,
		Find:     reportMissingFirstSignatures,
	},
	wire.RequireMessages("no-contents", `Gemini 400: "contents is not specified"`, "contents"),
}

// reportMissingFirstSignatures reports messages of the current turn whose first call has no
// signature. Only models that sign all their calls require it.
func reportMissingFirstSignatures(c *wire.Checker) {
	if !strings.Contains(c.Model, "gemini-3") {
		return
	}
	group := -1
	for _, s := range c.Outline[c.OpenTurnStart():] {
		if s.Kind != wire.OutlineCall || s.Message == group {
			continue
		}
		group = s.Message
		if s.JSON.Get("thoughtSignature").Text() == "" {
			c.Report(s.Path, s.CallID, "the call goes back without its thought signature")
		}
	}
}
