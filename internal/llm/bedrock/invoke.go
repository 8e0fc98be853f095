package bedrock

import (
	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Invoke is Anthropic's messages through Amazon Bedrock's InvokeModel. Bodies are those of
// Anthropic; the events of a stream are wrapped, and the framing unwraps them.
var Invoke = newInvoke()

func newInvoke() *wire.Dialect {
	d := *anthropic.Messages
	d.Name, d.Headers, d.Sign, d.Encode = "invoke", nil, sign, encodeInvoke
	d.Path = func(model string, stream bool) string {
		return modelPath(model, "invoke", "invoke-with-response-stream", stream)
	}
	return &d
}

// invokeVersion is the version of the messages format, as Bedrock names it.
const invokeVersion = "bedrock-2023-05-31"

// encodeInvoke writes a request body. The path names the model and says whether to stream.
func encodeInvoke(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	v, err := anthropic.Encode(t, req)
	if err != nil {
		return nil, err
	}
	o := rawjson.NewObject("anthropic_version", invokeVersion)
	o.Set("anthropic_version", v.Get("anthropic_version"))
	if anthropic.NeedsInterleavedBeta(t.Model, v.Get("thinking"), v.Get("tools")) && v.Get("anthropic_beta") == nil {
		o.Set("anthropic_beta", rawjson.ArrayOfStrings(anthropic.InterleavedBeta))
	}
	o.Merge(rawjson.Without(v, "model", "stream"))
	return o.Bytes(), nil
}
