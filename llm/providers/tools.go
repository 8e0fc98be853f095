package providers

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// ParseTools decodes tool definitions: a JSON array, or an object whose member tools is
// one. An element has OpenAI's form, nested under function or flat, or Anthropic's form. An
// element with a type of its own and without a schema is a provider's own tool, whose JSON
// is kept.
func ParseTools(b []byte) ([]llm.Tool, error) {
	v, err := rawjson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("parse tools: %w", err)
	}
	if v.Kind() == rawjson.KindObject {
		v = v.Get("tools")
	}
	if v.Kind() != rawjson.KindArray {
		return nil, errors.New(`parse tools: want an array, or an object with one under "tools"`)
	}
	var tools []llm.Tool
	seen := map[string]int{}
	for e := range v.Elements() {
		t, err := wire.ParseTool(e)
		if err != nil {
			return nil, fmt.Errorf("parse tools: element %d: %w", len(tools), err)
		}
		if at, twice := seen[t.Name]; twice && t.Name != "" {
			return nil, fmt.Errorf("parse tools: element %d: the name %q is that of element %d too", len(tools), t.Name, at)
		}
		seen[t.Name] = len(tools)
		tools = append(tools, t)
	}
	return tools, nil
}
