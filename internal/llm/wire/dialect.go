package wire

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// Dialect is a wire format. Package providers lists all of them.
type Dialect struct {
	Name string

	// Path returns the escaped path of requests, relative to the base URL. It may include a
	// query.
	Path func(model string, stream bool) string
	// Sign sets the API key, which may be empty, and the headers that the API requires, in h.
	Sign func(h http.Header, t Target, key string)
	// Headers adds the headers that a particular request body requires; nil: there are none.
	Headers func(h http.Header, t Target, body rawjson.Value)
	// NewReader returns a reader for one response.
	NewReader func(o *BlockWriter) ResponseReader
	// Encode encodes a request body. Equal requests give equal bytes. Target.Encode calls it
	// with messages that have only blocks for which Target.canSend returns true.
	Encode func(t Target, req *llm.Request) (rawjson.Value, error)
	// Replay returns the part of the next request that repeats one response; nil when nothing
	// of the response can be sent. Target.Replay calls it, and passes only blocks that Encode
	// would get.
	Replay func(t Target, blocks []content.Block) rawjson.Value
	// LoopWithoutReasoning reports whether the provider accepts an open tool loop without its
	// reasoning; nil: it refuses such a request, or answers it badly.
	LoopWithoutReasoning func(t Target) bool
	// DecodeRequest decodes a request body, which is an object. It must end with a call of
	// DecodeMessages or KeepUnknownFields, so that encoding the request gives the same body.
	DecodeRequest func(t Target, v rawjson.Value) (*llm.Request, error)
	// NewMessageReader returns a reader for the messages of a request; nil: the messages cannot
	// be read one by one.
	NewMessageReader func(t Target) MessageReader
	// Outline lists the items of a request body, for the rules that all dialects share. Rules
	// are the additional rules of this dialect. Both may be nil.
	Outline func(body rawjson.Value) []OutlineItem
	Rules   []Rule

	// OptionalFields are the paths of fields that Encode sets although no setting asks for
	// them; if a server refuses one, the request is sent again without it.
	// ReasoningOffFields are the paths of the fields that turn reasoning off.
	OptionalFields, ReasoningOffFields [][]string
	NeedsModel                         bool // a request without the name of a model cannot be sent
}

// ResponseReader reads one response and writes its blocks to a [BlockWriter]. Values are
// valid during the call only. An error of ReadBody or ReadEvent ends the response.
type ResponseReader interface {
	// ReadBody reads the body of a response that is not streamed.
	ReadBody(v rawjson.Value) error
	// ReadEvent reads one event of a stream. It returns io.EOF after the last one.
	ReadEvent(name string, v rawjson.Value) error
	// Finish is called once, after the last event. It writes what the reader held back, and
	// reports whether the response is complete. sawEnd is true if the framing marked the end
	// of the stream.
	Finish(sawEnd bool) bool
}

// SignBearer sets the API key in the Authorization header.
func SignBearer(h http.Header, _ Target, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// Target is one model of one provider, together with the provider's dialect.
type Target struct {
	Dialect  *Dialect
	Provider string // the name in the table of providers
	Generic  bool   // the provider is unknown except for its dialect
	Quirks   Quirks // how the provider's servers differ from others of the dialect
	Model    string // the model for requests that name none; may be empty

	blockForm    content.Wire  // the form of a block without a type
	continuation *Continuation // of the request that is being decoded; nil: none
}

// NewTarget returns the target of a provider, without a model.
func NewTarget(d *Dialect, provider string, generic bool, q Quirks) Target {
	return Target{Dialect: d, Provider: provider, Generic: generic, Quirks: q, blockForm: content.Form{Dialect: d.Name}.Wire()}
}

// ForSettings returns the target with the model of the settings, if they name one.
func (t Target) ForSettings(s llm.Settings) Target {
	if s.Model != "" {
		t.Model = s.Model
	}
	return t
}

// BlockForm returns the form of a new block of this dialect, without a type.
func (t Target) BlockForm() content.Wire { return t.blockForm }

// TypedForm returns the form of a block whose type on the wire does not follow from its
// kind.
func (t Target) TypedForm(kind string) content.Wire {
	return content.Form{Dialect: t.Dialect.Name, Type: kind}.Wire()
}

// NeedsReasoningInToolLoop reports whether the provider refuses an open tool loop without its
// reasoning, or answers it badly.
func (t Target) NeedsReasoningInToolLoop() bool {
	return t.Dialect.LoopWithoutReasoning == nil || !t.Dialect.LoopWithoutReasoning(t)
}

// Owns reports whether a block came from this dialect, so that its form fits here.
func (t Target) Owns(b content.Block) bool { return b.Form().Dialect == t.Dialect.Name }

// CanOpen reports whether a seal may be sent to this target. The dialect and the model family
// must be those that made the seal.
func (t Target) CanOpen(s content.Seal) bool {
	dialect, model, _ := strings.Cut(s.Minted, "/")
	return s.Data != "" && dialect == t.Dialect.Name && sameFamily(model, t.Model)
}

// HasForeignSeal reports whether a block has a seal that this target cannot open.
func (t Target) HasForeignSeal(b content.Block) bool {
	seal := b.Form().Seal
	return seal.Data != "" && !t.CanOpen(seal)
}

// sameFamily reports whether two model names may belong to one family: the first word of one
// name is a word of the other. Vendor, region and version do not matter. An empty name may
// be any model.
func sameFamily(a, b string) bool {
	if a == "" || b == "" || strings.EqualFold(a, b) {
		return true
	}
	x, y := modelNameWords(a), modelNameWords(b)
	return len(x) > 0 && len(y) > 0 && (containsFold(y, x[0]) || containsFold(x, y[0]))
}

// containsFold reports whether a list contains a word, ignoring case.
func containsFold(list []string, word string) bool {
	for _, w := range list {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// modelNameWords returns the words, runs of letters, in the last path element of a model name. On
// Bedrock that element may begin with a region and the vendor, as in us.anthropic.claude-opus; the
// region is left out.
func modelNameWords(model string) []string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if region, rest, _ := strings.Cut(model, "."); region != "" {
		if _, name, _ := strings.Cut(rest, "."); name != "" && unicode.IsLetter(rune(rest[0])) && unicode.IsLetter(rune(name[0])) {
			model = rest
		}
	}
	return strings.FieldsFunc(model, func(r rune) bool { return !unicode.IsLetter(r) })
}
