package providers

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// idRules is what ids of calls have to be like, by provider; those that are not
// named take any.
var idRules = map[string]*regexp.Regexp{
	"anthropic":        regexp.MustCompile(`^[a-zA-Z0-9_-]+$`),
	"invoke":           regexp.MustCompile(`^[a-zA-Z0-9_-]+$`),
	"bedrock":          regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
	"openai":           regexp.MustCompile(`^.{1,40}$`),
	"azure":            regexp.MustCompile(`^.{1,40}$`),
	"mistral":          regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
	"openai-responses": regexp.MustCompile(`^.{1,64}$`),
	"deepseek":         regexp.MustCompile(`.`),
	"google":           regexp.MustCompile(`.`),
	"interactions":     regexp.MustCompile(`.`),
	"cohere":           regexp.MustCompile(`.`),
}

// TestEveryTargetTakesForeignCallIDs: a talk whose calls somebody else made goes to
// each target with ids that it takes, each result with its call, the same each
// time; names stay.
func TestEveryTargetTakesForeignCallIDs(t *testing.T) {
	ids := []string{
		"functions.search:0", "functions.search:1", "a b", "a_b", "日本", "call_PTLP8xhu3uwZk4l3nlnrrJha", "toolu_01A", "abc123DEF",
		strings.Repeat("x", 70), strings.Repeat("x", 71), "call_1|fc_" + strings.Repeat("0f", 25),
	}
	var calls, results []content.Block
	for _, id := range ids {
		calls = append(calls, content.ToolCall{Wire: content.Form{Dialect: "elsewhere"}.Wire(), CallID: id, Name: "my.tool", Arguments: "{}"})
		results = append(results, content.ToolResult{CallID: id, Text: "did " + id})
	}
	talk := []content.Message{message(content.RoleUser, content.User("Go.")), message(content.RoleAssistant, calls...), message(content.RoleTool, results...)}
	for provider, rule := range idRules {
		t.Run(provider, func(t *testing.T) {
			body := encodedTwice(t, provider, "", &llm.Request{Messages: talk, Settings: llm.Settings{Model: "m"}})
			d, err := Open(provider, Config{})
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			var asked, answered []string
			for _, s := range d.target.Dialect.Outline(body) {
				switch s.Kind {
				case wire.OutlineCall:
					asked = append(asked, s.CallID)
				case wire.OutlineResult:
					answered = append(answered, s.CallID)
				}
			}
			for i, id := range asked {
				if names[id] || !rule.MatchString(id) {
					t.Errorf("%q is sent as %q", ids[i], id)
				}
				names[id] = true
			}
			if len(asked) != len(ids) || strings.Join(asked, "\n") != strings.Join(answered, "\n") {
				t.Errorf("asked %q, answered %q", asked, answered)
			}
			if !stringsIn(body)["my.tool"] {
				t.Errorf("the name of the tool is changed: %s", body)
			}
		})
	}
}

// TestCallIDsThatFitStay: what a target takes as it is, it gets as it is.
func TestCallIDsThatFitStay(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{wire.MistralCallID("abc123DEF"), "abc123DEF"},
		{wire.OpenAICallID("functions.search:0"), "functions.search:0"},
		{wire.SafeCallID("toolu_01-A", 0), "toolu_01-A"},
		{wire.SafeCallID(strings.Repeat("x", 64), 64), strings.Repeat("x", 64)},
		{wire.ShortCallID("a|b", 64), "a|b"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
}

// TestEmptyArgumentsBecomeAnObject: a call of somebody else's without arguments has an
// empty object of them, in every form.
func TestEmptyArgumentsBecomeAnObject(t *testing.T) {
	talk := []content.Message{
		message(content.RoleUser, content.User("Go.")),
		message(content.RoleAssistant, content.ToolCall{CallID: "abc123DEF", Name: "now"}),
		message(content.RoleTool, content.ToolResult{CallID: "abc123DEF", Text: "noon"}),
	}
	for _, provider := range []string{"anthropic", "bedrock", "openai", "openai-responses", "google", "interactions", "cohere", "ollama"} {
		body := encodedTwice(t, provider, "", &llm.Request{Messages: talk, Settings: llm.Settings{Model: "m"}})
		var found []rawjson.Value
		var walk func(rawjson.Value)
		walk = func(v rawjson.Value) {
			for e := range v.Elements() {
				walk(e)
			}
			for key, e := range v.Members() {
				if (key == "input" || key == "args" || key == "arguments") && e.Kind() != rawjson.KindArray {
					found = append(found, e)
				}
				walk(e)
			}
		}
		walk(body)
		if len(found) != 1 || strings.Trim(string(found[0]), `"`) != "{}" {
			t.Errorf("%s: %s in %s", provider, found, body)
		}
	}
}
