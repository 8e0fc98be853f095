package providers

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

var update = flag.Bool("update", false, "write the tables of docs/providers.md from the code")

// TestProvidersPageIsCurrent keeps the tables of docs/providers.md as the code has
// them.
func TestProvidersPageIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "providers.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, table := range map[string]func(*testing.T) string{
		"providers": providersTable, "settings": settingsTables, "refused": refusedTable, "rules": rulesTable,
		"models that cannot stop": stopsTable, "models that want it back": replaysTable,
	} {
		begin, end := "<!-- "+name+": from the code, go test ./llm/providers -run ProvidersPage -update -->\n", "<!-- end of "+name+" -->"
		before, rest, begun := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !begun || !ended {
			t.Fatalf("the page has no place for the table of %s", name)
		}
		page = before + begin + table(t) + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != string(text) {
		t.Error("docs/providers.md is stale: go test ./llm/providers -run ProvidersPage -update")
	}
	rules, err := os.ReadFile(filepath.Join("..", "..", "check.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\trule\w+ += "([\w-]+)"`).FindAllSubmatch(rules, -1) {
		if !strings.Contains(page, "| `"+string(m[1])+"` |") {
			t.Errorf("the rule %s is not on the page", m[1])
		}
	}
}

// quoted is words as code, in one cell of a table.
func quoted(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

func providersTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| provider | other names | dialect | base URL | key |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(vendors())) {
		p := vendors()[name]
		var others []string
		for _, alias := range slices.Sorted(maps.Keys(aliases)) {
			if aliases[alias] == name {
				others = append(others, alias)
			}
		}
		base := p.BaseURL
		if base == "" {
			base = cmp.Or(p.base, "to be given")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, quoted(others), p.Dialect, base, quoted(p.KeyEnv))
	}
	return b.String()
}

// examples is a provider and a model for each form that the settings take.
var examples = []struct{ provider, model, means string }{
	{"openai", "gpt-5.2", "chat: OpenAI, Azure"},
	{"deepseek", "deepseek-reasoner", "chat: others"},
	{"alibaba", "qwen3-max", "chat: Alibaba"},
	{"openrouter", "z-ai/glm-5", "chat: OpenRouter, Vercel"},
	{"mistral", "magistral-medium", "chat: Mistral"},
	{"openai-responses", "gpt-5.2", "responses"},
	{"openrouter-responses", "openai/gpt-5.2", "responses: OpenRouter"},
	{"anthropic", "claude-opus-4-6", "messages: Claude from 4.6"},
	{"anthropic", "claude-sonnet-4-5", "messages: others"},
	{"google", "gemini-3-pro", "gemini: from 3"},
	{"google", "gemini-2.5-flash", "gemini: others"},
	{"interactions", "gemini-3-pro", "interactions"},
	{"bedrock", "us.anthropic.claude-opus-4-6", "converse: Claude from 4.6"},
	{"bedrock", "us.anthropic.claude-sonnet-4-5", "converse: other Claude"},
	{"bedrock", "amazon.nova-2-lite-v1:0", "converse: Nova"},
	{"bedrock", "qwen.qwen3-32b-v1:0", "converse: others"},
	{"cohere", "command-a-reasoning", "cohere"},
	{"ollama", "gpt-oss:20b", "ollama: gpt-oss"},
	{"ollama", "qwen3", "ollama: others"},
}

// asked is what the settings of the tables are: a heading, and what it does to the
// settings without and with it.
var settingsColumns = []struct {
	title   string
	without func(s *llm.Settings)
	with    func(s *llm.Settings)
}{
	{"`reasoning.enabled` true, the default", func(s *llm.Settings) { s.Reasoning.Hidden = true }, nil},
	{"`reasoning.enabled` false, or `reasoning.effort` none", func(s *llm.Settings) { s.Reasoning.Hidden = true }, func(s *llm.Settings) { s.Reasoning.Disabled = true }},
	{"`reasoning.effort` high", nil, func(s *llm.Settings) { s.Reasoning.Effort = "high" }},
	{"`reasoning.summary` detailed", nil, func(s *llm.Settings) { s.Reasoning.Summary = "detailed" }},
	{"`reasoning.max_tokens` 4000", nil, func(s *llm.Settings) { s.Reasoning.MaxTokens = 4000 }},
	{"`reasoning.format` native, with reasoning to send back", nil, func(s *llm.Settings) { s.Reasoning.Native = true }},
	{"`max_output_tokens` 500", nil, func(s *llm.Settings) { s.MaxOutputTokens = 500 }},
	{"`temperature` 0.5", nil, func(s *llm.Settings) { half := 0.5; s.Temperature = &half }},
	{"`tool_choice` required", nil, func(s *llm.Settings) { s.ToolChoice = "required" }},
	{"`tool_choice` weather, a tool", nil, func(s *llm.Settings) { s.ToolChoice = "weather" }},
}

// settingsTables shows for each setting the part of the body that it makes.
func settingsTables(t *testing.T) string {
	var b strings.Builder
	for _, a := range settingsColumns {
		fmt.Fprintf(&b, "\n%s\n\n| dialect | becomes |\n|---|---|\n", a.title)
		var parts []string
		who := map[string][]string{}
		for _, e := range examples {
			with := llm.Settings{Reasoning: llm.Reasoning{Summary: "auto"}} // as the settings have it
			less := with
			if a.without != nil {
				a.without(&less)
			}
			if a.with != nil {
				a.with(&with)
			}
			part := "nothing"
			if v := added(settingsBody(t, e.provider, e.model, with), settingsBody(t, e.provider, e.model, less)); v != nil {
				part = "`" + string(v) + "`"
			}
			if who[part] == nil {
				parts = append(parts, part)
			}
			who[part] = append(who[part], e.means)
		}
		for _, part := range parts {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(who[part], "; "), part)
		}
	}
	return b.String() + "\n"
}

// settingsBody is the body of a small request with these settings.
func settingsBody(t *testing.T, provider, model string, s llm.Settings) rawjson.Value {
	t.Helper()
	c, err := Open(provider, Config{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Encode(&llm.Request{
		Settings: s, Tools: []llm.Tool{{Name: "weather"}},
		Messages: []content.Message{
			{Role: content.RoleUser, Blocks: []content.Block{content.User("Why?")}},
			{Role: content.RoleAssistant, Blocks: []content.Block{content.Reasoning{Text: "Hm."}, content.Assistant("So.")}},
			{Role: content.RoleUser, Blocks: []content.Block{content.User("Ah.")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// added is the members of an object that another one has not, or has in another
// way, and of what both have the same; nil when there are none.
func added(v, other rawjson.Value) rawjson.Value {
	var o rawjson.Object
	for key, member := range v.Members() {
		switch was := other.Get(key); {
		case rawjson.Equal(member, was):
		case member.Kind() == rawjson.KindObject && was.Kind() == rawjson.KindObject:
			o.Set(key, added(member, was))
		case key == "messages" && was != nil:
			o.Set(key, rawjson.Value("["+string(member.At(1))+"]"))
		default:
			o.Set(key, member)
		}
	}
	return rawjson.NonEmptyObject(o.Bytes())
}

func stopsTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| models | providers, dialects | effort without reasoning | evidence |\n|---|---|---|---|\n")
	for _, s := range wire.OffRules {
		asked := "nothing"
		if s.Effort != "" {
			asked = "`" + s.Effort + "`"
		}
		if s.StillReasons {
			asked += "; the model still reasons"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", quoted(s.Models), cmp.Or(quoted(s.Vendors), "all"), asked, s.Evidence)
	}
	return b.String()
}

func replaysTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| provider | the same models elsewhere | except | placeholder for missing reasoning | evidence |\n|---|---|---|---|---|\n")
	for _, r := range wire.ReplayRules {
		where := "messages with tool calls"
		if r.EveryMessage {
			where = "all messages of the model, in a request with tools"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%q` in %s | %s |\n", r.Vendor, quoted(r.Models), quoted(r.NonReasoning), r.Placeholder, where, r.Evidence)
	}
	return b.String()
}

func refusedTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| dialect | removed fields |\n|---|---|\n")
	for _, dialect := range Dialects() {
		var paths []string
		for _, path := range dialectNamed(dialect).OptionalFields {
			paths = append(paths, strings.Join(path, "."))
		}
		if paths != nil {
			fmt.Fprintf(&b, "| %s | %s |\n", dialect, quoted(paths))
		}
	}
	return b.String()
}

func rulesTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| rule | dialects | evidence |\n|---|---|---|\n")
	row := func(r wire.Rule, dialects string) {
		if r.Warns {
			dialects += " (a warning)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Name, dialects, strings.ReplaceAll(r.Evidence, "|", "\\|"))
	}
	for _, r := range wire.CommonRules {
		row(r, "all")
	}
	var seen []string
	for _, name := range Dialects() {
		for _, r := range dialectNamed(name).Rules {
			if slices.Contains(seen, r.Name+r.Evidence) {
				continue // of a dialect that has the rules of another
			}
			seen = append(seen, r.Name+r.Evidence)
			var who []string
			for _, other := range Dialects() {
				if slices.ContainsFunc(dialectNamed(other).Rules, func(o wire.Rule) bool { return o.Name+o.Evidence == r.Name+r.Evidence }) {
					who = append(who, other)
				}
			}
			row(r, strings.Join(who, ", "))
		}
	}
	return b.String()
}
