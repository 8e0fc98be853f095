package providers

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineGemini says what a request body of the gemini dialect says. Calls need
// no ids there: those without are told apart by name and order.
func outlineGemini(body rawjson.Value) []said {
	made, answered := counter{}, counter{}
	name := func(v rawjson.Value, counted counter) string {
		if id := v.Get("id").Text(); id != "" {
			return id
		}
		return counted.next(v.Get("name").Text())
	}
	return outlineParts(body, "contents", "parts", "model", func(part rawjson.Value, s *said) {
		switch {
		case part.Get("functionCall") != nil:
			s.what, s.id = saidCall, name(part.Get("functionCall"), made)
		case part.Get("functionResponse") != nil:
			s.what, s.id = saidResult, name(part.Get("functionResponse"), answered)
		case part.Get("thought").Bool():
			s.what = saidThought
		case part.Get("text") != nil:
			s.what = saidText
		}
	})
}

// geminiRules is what generateContent refuses.
var geminiRules = []rule{
	{
		name:     "thought-signature-missing",
		evidence: `Gemini 400: "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly" (Gemini 3: the first call of each step of the current turn)`,
		find:     signatureMissing,
	},
	mustSay("no-contents", `Gemini 400: "contents is not specified"`, "contents"),
}

// signatureMissing: in the current turn the first call of each message is signed.
// Only the models that sign all their calls demand it.
func signatureMissing(c *checking) {
	if !strings.Contains(c.model, "gemini-3") {
		return
	}
	group := -1
	for _, s := range c.said[c.openTurn():] {
		if s.what != saidCall || s.group == group {
			continue
		}
		group = s.group
		if geminiPart(c.body, s.path).Get("thoughtSignature").Text() == "" {
			c.found(s.path, s.id, "the call goes back without its thought signature")
		}
	}
}

// geminiPart is the part at a path that outlineGemini made.
func geminiPart(body rawjson.Value, path string) rawjson.Value {
	var i, j int
	if _, err := fmt.Sscanf(path, "contents[%d].parts[%d]", &i, &j); err != nil {
		return nil
	}
	return body.Get("contents").At(i).Get("parts").At(j)
}
