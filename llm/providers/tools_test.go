package providers

import (
	"strings"
	"testing"
)

func TestParseTools(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}}}`
	for name, text := range map[string]string{
		"openai, nested":     `[{"type":"function","function":{"name":"f","description":"d","parameters":` + schema + `}}]`,
		"openai, flat":       `[{"type":"function","name":"f","description":"d","parameters":` + schema + `,"strict":true}]`,
		"anthropic":          `[{"name":"f","description":"d","input_schema":` + schema + `}]`,
		"anthropic, custom":  `[{"type":"custom","name":"f","description":"d","input_schema":` + schema + `}]`,
		"in an object":       `{"tools":[{"name":"f","description":"d","input_schema":` + schema + `}]}`,
		"without a type":     `[{"function":{"name":"f","description":"d","parameters":` + schema + `}}]`,
		"with white space":   " \n[ {\"name\" : \"f\", \"description\":\"d\", \"input_schema\": " + schema + "} ]\n",
		"as an MCP server's": `{"tools":[{"name":"f","description":"d","inputSchema":` + schema + `}]}`,
	} {
		tools, err := ParseTools([]byte(text))
		if err != nil || len(tools) != 1 {
			t.Errorf("%s: %v, %v", name, tools, err)
			continue
		}
		if got := tools[0]; got.Name != "f" || got.Description != "d" || string(got.Schema) != schema || got.Native != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestParseToolsKeepsNativeTools(t *testing.T) {
	const own = `{"type":"web_search_20250305","name":"web_search","max_uses":5}`
	tools, err := ParseTools([]byte(`[` + own + `,{"type":"code_interpreter"},{"name":"bare"}]`))
	if err != nil || len(tools) != 3 {
		t.Fatal(tools, err)
	}
	if tools[0].Name != "web_search" || string(tools[0].Native) != own || tools[0].Schema != nil {
		t.Errorf("%+v", tools[0])
	}
	if string(tools[1].Native) != `{"type":"code_interpreter"}` || tools[2].Native != nil || tools[2].Name != "bare" {
		t.Errorf("%+v", tools[1:])
	}
}

func TestParseToolsErrors(t *testing.T) {
	for text, want := range map[string]string{
		`nonsense`:                           "parse tools: ",
		`"f"`:                                "want an array",
		`{"functions":[]}`:                   `under "tools"`,
		`[{"name":"f"},7]`:                   "element 1: want an object, have number 7",
		`[{"name":"f"},{"description":"x"}]`: `element 1: it has no "name"`,
		`[{"name":"f","input_schema":[]}]`:   `element 0: "f": its schema is no object but array`,
		`[{"name":"f"},{"name":"g"},{"name":"f"}]`: `element 2: the name "f" is that of element 0 too`,
		`[{"name":"f"}`: "parse tools: ",
	} {
		if _, err := ParseTools([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
