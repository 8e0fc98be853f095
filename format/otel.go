package format

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// OpenTelemetry: a response is a client span in the JSON encoding of OTLP
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding) with the attributes of the
// conventions for generative AI, which are in development
// (https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai).

type otlpExport struct {
	ResourceSpans []otlpResource `json:"resourceSpans"`
}

type otlpResource struct {
	Resource   otlpAttributes `json:"resource"`
	ScopeSpans []otlpScope    `json:"scopeSpans"`
}

type otlpScope struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpSpan struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
	Name    string `json:"name"`
	Kind    int    `json:"kind"`
	Start   string `json:"startTimeUnixNano"`
	End     string `json:"endTimeUnixNano"`
	otlpAttributes
}

type otlpAttributes struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpAttribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

const clientSpan = 3 // SPAN_KIND_CLIENT

// SpanJSON returns the reasoning of one response, oldest first, as one line of an OTLP file.
// Seals are left out.
func SpanJSON(thoughts []Reasoning) any {
	last := thoughts[len(thoughts)-1]
	o := last.Origin()
	start := o.Started
	if start.IsZero() {
		start = last.Commit.Time
	}
	trace, span := last.Commit.OriginID, thoughts[0].Commit.ID
	if trace.IsZero() {
		trace = last.Commit.ID
	}
	s := otlpSpan{
		TraceID: hex.EncodeToString(trace[:16]), SpanID: hex.EncodeToString(span[:8]), Name: strings.TrimSpace("chat " + validUTF8(o.Model)), Kind: clientSpan,
		Start: nanos(start), End: nanos(start.Add(o.Duration)),
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", otelProvider(o.Provider))
	s.text("gen_ai.conversation.id", o.Session)
	s.text("gen_ai.request.model", cmp.Or(o.Settings["model"], o.Model))
	s.text("gen_ai.response.model", o.Model)
	s.text("gen_ai.response.id", o.ResponseID)
	s.text("server.address", o.Endpoint)
	if o.Finish != "" {
		s.add("gen_ai.response.finish_reasons", map[string]any{"arrayValue": map[string]any{"values": []any{map[string]any{"stringValue": validUTF8(o.Finish)}}}})
	}
	if o.FirstToken > 0 {
		s.add("gen_ai.response.time_to_first_chunk", map[string]any{"doubleValue": o.FirstToken.Seconds()})
	}
	u := o.Usage
	s.number("gen_ai.usage.input_tokens", u.Input)
	s.number("gen_ai.usage.output_tokens", u.Output)
	s.number("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
	s.number("gen_ai.usage.cache_read.input_tokens", u.Cached)
	s.number("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)
	s.text("gen_ai.output.messages", otelMessages(thoughts, o.Finish))
	s.text("tract.commit", span.String())
	resource := otlpResource{ScopeSpans: []otlpScope{{Spans: []otlpSpan{s}}}}
	resource.ScopeSpans[0].Scope.Name = "tract"
	resource.Resource.text("service.name", "tract")
	return otlpExport{ResourceSpans: []otlpResource{resource}}
}

func (a *otlpAttributes) add(key string, value map[string]any) {
	a.Attributes = append(a.Attributes, otlpAttribute{Key: key, Value: value})
}

func (a *otlpAttributes) text(key, value string) {
	if value != "" {
		a.add(key, map[string]any{"stringValue": validUTF8(value)})
	}
}

func (a *otlpAttributes) number(key string, n int64) {
	if n > 0 {
		a.add(key, map[string]any{"intValue": strconv.FormatInt(n, 10)})
	}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// otelProvider returns the name of a provider in the conventions.
func otelProvider(name string) string {
	known := map[string]string{
		"google": "gcp.gemini", "gemini": "gcp.gemini", "bedrock": "aws.bedrock", "azure": "azure.ai.openai",
		"xai": "x_ai", "mistral": "mistral_ai",
	}
	if other, ok := known[name]; ok {
		return other
	}
	return name
}

// otelMessages returns reasoning as the JSON of gen_ai.output.messages.
func otelMessages(thoughts []Reasoning, finish string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	parts := []part{}
	for _, t := range thoughts {
		if t.Commit.Block != nil && t.Commit.Tombstone == nil {
			parts = append(parts, part{"reasoning", validUTF8(t.Block.String())})
		}
	}
	b, err := json.Marshal([]any{map[string]any{"role": "assistant", "parts": parts, "finish_reason": validUTF8(finish)}})
	if err != nil {
		panic(fmt.Sprintf("format: %v", err)) // texts can be written
	}
	return string(b)
}
