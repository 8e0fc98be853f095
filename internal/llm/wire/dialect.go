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

	// Path returns where requests go, below the base URL, escaped as in a URL. A query may
	// follow.
	Path func(model string, stream bool) string
	// Sign puts the key, which may be empty, and the headers that the format requires into
	// h.
	Sign func(h http.Header, t Target, key string)
	// Headers adds the headers that a request body requires; nil: none does.
	Headers func(h http.Header, t Target, body rawjson.Value)
	// NewReader returns a reader for one response.
	NewReader func(o *BlockWriter) ResponseReader
	// Encode writes a request body. Equal requests give equal bytes. Target.Encode calls it,
	// with messages that have only blocks for which Target.canSend returns true.
	Encode func(t Target, req *llm.Request) (rawjson.Value, error)
	// Replay writes the part of the next request that stands for one response; nil when
	// nothing of the response can be sent. Target.Replay calls it, with blocks as Encode
	// gets them.
	Replay func(t Target, blocks []content.Block) rawjson.Value
	// LoopWithoutReasoning reports whether an open tool loop may go back without its
	// reasoning; nil: the provider refuses or degrades it.
	LoopWithoutReasoning func(t Target) bool
	// DecodeRequest reads a request body, an object. It ends with DecodeMessages or
	// KeepUnknownFields, so that encoding gives the body again.
	DecodeRequest func(t Target, v rawjson.Value) (*llm.Request, error)
	// NewMessageReader returns a reader for the messages of a request; nil: they cannot be
	// read one by one.
	NewMessageReader func(t Target) MessageReader
	// Outline lists what a request body says, for the rules that all dialects share; Rules
	// are what its servers refuse beyond them. Both may be nil.
	Outline func(body rawjson.Value) []OutlineItem
	Rules   []Rule

	// OptionalFields are fields of a body that Encode sets unasked: a server that refuses
	// one is asked again without it. ReasoningOffFields are the fields that ask a model
	// not to reason.
	OptionalFields, ReasoningOffFields [][]string
	NeedsModel                         bool // a request without the name of a model cannot be sent
}

// ResponseReader reads one response and writes its blocks to a [BlockWriter]. Values are
// valid during the call only. An error of ReadBody or ReadEvent ends the response.
type ResponseReader interface {
	// ReadBody reads a response that came in one piece.
	ReadBody(v rawjson.Value) error
	// ReadEvent reads one event of a stream. It returns io.EOF after the last one.
	ReadEvent(name string, v rawjson.Value) error
	// Finish is called once, after the last event. It writes what the reader held back and
	// reports whether the response is whole. sawEnd is true when the framing marked the
	// end of the stream.
	Finish(sawEnd bool) bool
}

// SignBearer sends the key in the Authorization header.
func SignBearer(h http.Header, _ Target, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// Target is one model of one provider, in a dialect.
type Target struct {
	Dialect  *Dialect
	Provider string // the name in the table of providers
	Generic  bool   // nothing is known of the provider but its dialect
	Quirks   Quirks // where its servers differ
	Model    string // the model for requests that name none; may be empty

	blockForm content.Wire // the form of a block without a type
}

// NewTarget returns the target of a provider, for no model yet.
func NewTarget(d *Dialect, provider string, generic bool, q Quirks) Target {
	return Target{Dialect: d, Provider: provider, Generic: generic, Quirks: q, blockForm: content.Form{Dialect: d.Name}.Wire()}
}

// ForSettings returns the target with the model that the settings name, if they do.
func (t Target) ForSettings(s llm.Settings) Target {
	if s.Model != "" {
		t.Model = s.Model
	}
	return t
}

// BlockForm returns the form that every block of this dialect begins with.
func (t Target) BlockForm() content.Wire { return t.blockForm }

// TypedForm returns the form of a block whose type on the wire does not follow from its
// kind.
func (t Target) TypedForm(kind string) content.Wire {
	return content.Form{Dialect: t.Dialect.Name, Type: kind}.Wire()
}

// NeedsReasoningInToolLoop reports whether the provider refuses or degrades an open tool
// loop that goes back without its reasoning.
func (t Target) NeedsReasoningInToolLoop() bool {
	return t.Dialect.LoopWithoutReasoning == nil || !t.Dialect.LoopWithoutReasoning(t)
}

// Owns reports whether a block came from this dialect, so that its form fits here.
func (t Target) Owns(b content.Block) bool { return b.Form().Dialect == t.Dialect.Name }

// CanOpen reports whether a seal may be sent to this target: only to the dialect that made
// it, and a model of the same family.
func (t Target) CanOpen(s content.Seal) bool {
	dialect, model, _ := strings.Cut(s.Minted, "/")
	return s.Data != "" && dialect == t.Dialect.Name && sameFamily(model, t.Model)
}

// HasForeignSeal reports whether a block has a seal that another model made.
func (t Target) HasForeignSeal(b content.Block) bool {
	seal := b.Form().Seal
	return seal.Data != "" && !t.CanOpen(seal)
}

// sameFamily reports whether two names may be models of one family: the first word of one
// is a word of the other, whatever vendor, region or version stands around it. An empty
// name may be any model.
func sameFamily(a, b string) bool {
	if a == "" || b == "" || strings.EqualFold(a, b) {
		return true
	}
	x, y := letterRuns(a), letterRuns(b)
	return len(x) > 0 && len(y) > 0 && (containsFold(y, x[0]) || containsFold(x, y[0]))
}

// containsFold reports whether a list contains a word, in any case.
func containsFold(list []string, word string) bool {
	for _, w := range list {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// letterRuns returns the runs of letters in the last part of the name of a model. On
// Bedrock that part may begin with a region before the vendor: us.anthropic.claude-opus.
func letterRuns(model string) []string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if region, rest, _ := strings.Cut(model, "."); region != "" {
		if _, name, _ := strings.Cut(rest, "."); name != "" && unicode.IsLetter(rune(rest[0])) && unicode.IsLetter(rune(name[0])) {
			model = rest
		}
	}
	return strings.FieldsFunc(model, func(r rune) bool { return !unicode.IsLetter(r) })
}
