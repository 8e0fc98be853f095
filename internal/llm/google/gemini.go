package google

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Gemini is Google's generateContent API (https://ai.google.dev/api/generate-content). A
// response is a list of parts, and is sent back as that list. Any part may have a seal. A
// sealed part is a block of its own, even when its text is empty, and is never merged with
// another part.
var Gemini = &wire.Dialect{
	Name:          "gemini",
	Path:          geminiPath,
	Sign:          signGemini,
	NewReader:     func(o *wire.BlockWriter) wire.ResponseReader { return &geminiReader{BlockWriter: o} },
	Encode:        encodeGemini,
	Replay:        encodeAssistantContent,
	DecodeRequest: decodeGeminiRequest,
	Outline:       outlineGeminiContents,
	Rules:         geminiRules,

	OptionalFields:     [][]string{{"generationConfig", "thinkingConfig", "includeThoughts"}},
	ReasoningOffFields: [][]string{{"generationConfig", "thinkingConfig", "thinkingBudget"}, {"generationConfig", "thinkingConfig", "thinkingLevel"}},
	NeedsModel:         true,
}

// geminiPath returns the URL path of a model. Without alt=sse, the server sends a stream as
// one JSON array.
func geminiPath(model string, stream bool) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	parts := strings.Split(model, "/")
	for i, part := range parts {
		if parts[i] = url.PathEscape(part); part == "." || part == ".." {
			parts[i] = strings.ReplaceAll(part, ".", "%2E") // so that a model name cannot lead to another path
		}
	}
	model = strings.Join(parts, "/")
	if stream {
		return "/" + model + ":streamGenerateContent?alt=sse"
	}
	return "/" + model + ":generateContent"
}

// signGemini sets the API key in Google's header. Other vendors' servers read the key there or
// as a bearer token, so they get both.
func signGemini(h http.Header, t wire.Target, key string) {
	if key == "" {
		return
	}
	h.Set("X-Goog-Api-Key", key)
	if t.Provider != "google" && t.Provider != "interactions" {
		wire.SignBearer(h, t, key)
	}
}

// geminiReader reads one response.
type geminiReader struct {
	*wire.BlockWriter
	finished       bool
	openBlock      *wire.BlockBuilder // the block that the next chunk may continue; nil: none
	openArgs       *partialArgs       // arguments of openBlock, when it is a call whose arguments come in pieces; else nil
	lastServerCall string             // the id of the last call that the provider ran
	sources        rawjson.Object
	hasSources     bool
}

// sourceMembers are the members of a candidate that cite the sources of its text. They become
// a block that is not sent back.
var sourceMembers = []string{"groundingMetadata", "citationMetadata", "urlContextMetadata"}

// typeSources is the type of the block that keeps the sources.
const typeSources = "sources"

// ReadBody reads the body of a response that is not streamed.
func (g *geminiReader) ReadBody(v rawjson.Value) error {
	known := false
	for _, key := range []string{"candidates", "usageMetadata", "promptFeedback", "responseId", "error"} {
		known = known || v.Get(key) != nil
	}
	if !known {
		return fmt.Errorf("%w: no answer in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	if err := g.readChunk(v, func(part rawjson.Value) error {
		g.Emit(g.partBlock(part))
		return nil
	}); err != nil {
		return err
	}
	g.finished = true
	return nil
}

// ReadEvent reads one chunk of a stream. Chunks may follow the one with the finish reason; the
// last usage object is valid.
func (g *geminiReader) ReadEvent(_ string, v rawjson.Value) error {
	return g.readChunk(v, g.readStreamedPart)
}

// readChunk reads a response body or a chunk of a stream, and calls readPart for each part.
func (g *geminiReader) readChunk(v rawjson.Value, readPart func(rawjson.Value) error) error {
	if v.Get("error").Kind() == rawjson.KindObject {
		return wire.NewAPIError(g.Provider, v)
	}
	g.SetHead(func(h *llm.Head) {
		h.ID = cmp.Or(v.Get("responseId").Text(), h.ID)
		h.Model = cmp.Or(v.Get("modelVersion").Text(), h.Model)
	})
	g.readUsage(v.Get("usageMetadata"))
	c := g.firstCandidate(v.Get("candidates"))
	for p := range g.Elements(c.Get("content", "parts")) {
		if err := readPart(p); err != nil {
			return err
		}
	}
	for _, key := range sourceMembers {
		if s := c.Get(key); s.Kind() == rawjson.KindObject {
			g.sources.Set(key, rawjson.Compact(s))
			g.hasSources = true
		}
	}
	if reason := c.Get("finishReason").Text(); reason != "" {
		g.SetHead(func(h *llm.Head) { h.Finish = reason })
		g.finished = true
		g.endOpenBlock()
		g.EmitHead()
	}
	if reason := v.Get("promptFeedback", "blockReason").Text(); reason != "" && c == nil {
		return g.newBlockedError(reason, v.Get("promptFeedback"))
	}
	return nil
}

// firstCandidate returns the candidate with index 0; nil when there is none. Requests ask for
// one candidate only.
func (g *geminiReader) firstCandidate(list rawjson.Value) rawjson.Value {
	for c := range list.Elements() {
		if n, _ := c.Get("index").Int(); n == 0 {
			return c
		}
	}
	return nil
}

// newBlockedError returns the error for a prompt that the provider blocked; v is promptFeedback.
func (g *geminiReader) newBlockedError(reason string, v rawjson.Value) error {
	return &llm.APIError{
		Provider: g.Provider, Type: reason, Raw: bytes.Clone(v),
		Message: cmp.Or(v.Get("blockReasonMessage").Text(), "the prompt is blocked"),
	}
}

// Finish reports whether the response is complete. It ends the open block of a complete
// response and emits the block of its sources.
func (g *geminiReader) Finish(bool) bool {
	switch {
	case g.openBlock == nil:
	case g.finished || g.openBlock != g.Last:
		g.endOpenBlock()
	case g.openArgs != nil:
		g.AppendText(g.openBlock, string(g.openArgs.json())) // shows how far the arguments came
	}
	if g.finished && g.hasSources {
		g.Emit(content.Native{Wire: g.TypedForm(typeSources), JSON: string(g.sources.Bytes())})
	}
	return g.finished
}

// readUsage reads a usage object. Its candidatesTokenCount excludes reasoning, and its
// promptTokenCount excludes what the provider's tools added to the prompt.
func (g *geminiReader) readUsage(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject || len(v) > content.MaxRawUsage {
		return
	}
	n := wire.TokenCounts(v)
	u := content.Usage{
		Input: n("promptTokenCount") + n("toolUsePromptTokenCount"), Output: n("candidatesTokenCount") + n("thoughtsTokenCount"),
		Reasoning: n("thoughtsTokenCount"), Cached: n("cachedContentTokenCount"),
	}
	if u.Input|u.Output == 0 && !g.Head.Usage.IsZero() {
		return
	}
	u.Raw = bytes.Clone(v)
	g.SetUsage(u)
}
