package bedrock

import (
	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// The invoke dialect: Anthropic's messages through Amazon Bedrock's InvokeModel.
// What a model says there is what it says at home; a stream of it comes wrapped,
// and the framing unwraps it.
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

// encodeInvoke writes a request. The model and whether to stream are told by the
// path.
func encodeInvoke(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	v, err := anthropic.Encode(t, req)
	if err != nil {
		return nil, err
	}
	o := rawjson.NewObject("anthropic_version", invokeVersion)
	o.Set("anthropic_version", v.Get("anthropic_version"))
	if anthropic.NeedsInterleavedBeta(t.Model, v.Get("thinking"), v.Get("tools")) && v.Get("anthropic_beta") == nil {
		var beta rawjson.Array
		beta.AddString(anthropic.InterleavedBeta)
		o.Set("anthropic_beta", beta.Bytes())
	}
	o.Merge(rawjson.Without(v, "model", "stream"))
	return o.Bytes(), nil
}
