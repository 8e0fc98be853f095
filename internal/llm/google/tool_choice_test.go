package google

import (
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

func TestToolChoice(t *testing.T) {
	for choice, want := range map[string][2]string{
		"":         {`null`, `null`},
		"auto":     {`{"functionCallingConfig":{"mode":"AUTO"}}`, `"auto"`},
		"none":     {`{"functionCallingConfig":{"mode":"NONE"}}`, `"none"`},
		"required": {`{"functionCallingConfig":{"mode":"ANY"}}`, `"any"`},
		"f":        {`{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`, `{"allowed_tools":{"mode":"any","tools":["f"]}}`},
	} {
		orNull := func(v rawjson.Value) rawjson.Value {
			if v == nil {
				return rawjson.Value("null")
			}
			return v
		}
		if have := orNull(encodeGeminiToolChoice(choice)); !rawjson.Equal(have, rawjson.Value(want[0])) {
			t.Errorf("gemini: %q becomes %s", choice, have)
		}
		if have := orNull(encodeInteractionsToolChoice(choice)); !rawjson.Equal(have, rawjson.Value(want[1])) {
			t.Errorf("interactions: %q becomes %s", choice, have)
		}
	}
}
