package wire

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// dialect is a wire format. Each is one file that registers one of these.
type Dialect struct {
	Name string

	// path is where requests go, below the base URL, escaped as in a URL. A query may
	// follow.
	Path func(model string, stream bool) string
	// sign puts the key, which may be empty, and what else the format demands
	// into the headers.
	Sign func(h http.Header, t Target, key string)
	// headers puts what a request body needs beside it into the headers; nil: nothing.
	Headers func(h http.Header, t Target, body rawjson.Value)
	// read starts reading one response.
	NewReader func(o *BlockWriter) ResponseReader
	// encode writes a request body.
	Encode func(t Target, req *llm.Request) (rawjson.Value, error)
	// replay writes what stands for one response in the next request; nil when
	// nothing of it can be sent.
	Replay func(t Target, blocks []content.Block) rawjson.Value
	// wantsTurn tells whether an open tool loop must go back with its thoughts.
	NeedsReasoningInToolLoop func(t Target) bool
	// request reads the messages, tools and settings of a request body, an object;
	// nil where nobody wrote it yet. It ends with settle.
	DecodeRequest func(t Target, v rawjson.Value) (*llm.Request, error)
	// talk begins to read the messages of a request; nil where they are not read one
	// by one.
	NewMessageReader func(t Target) MessageReader
	// outline says what a request body says, for the rules that all dialects have
	// in common; rules are what its servers refuse beyond them. Both may be nil.
	Outline func(body rawjson.Value) []OutlineItem
	Rules   []Rule

	// unasked is the fields of a body that encode sets though no setting asks for
	// them; a server that does not know one is asked without it. off is the fields
	// that ask a model not to reason.
	OptionalFields, ReasoningOffFields [][]string
	NeedsModel                         bool // a request without the name of a model cannot be sent
}

// reader reads one response and puts what it finds into an output. Values are
// valid during the call only. An error of event or whole ends the response.
type ResponseReader interface {
	// whole reads a response that came in one piece.
	ReadBody(v rawjson.Value) error
	// event reads one event of a stream. io.EOF says that it was the last.
	ReadEvent(name string, v rawjson.Value) error
	// end is called once, when no event comes any more. It puts out what it held
	// back and tells whether the answer is whole. said is whether the framing said
	// that the stream ends.
	Finish(text bool) bool
}

// signBearer sends the key in the usual header.
func SignBearer(h http.Header, _ Target, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// target is one model's wire format.
type Target struct {
	Dialect  *Dialect
	Provider string // its name, as in the table of providers
	Generic  bool   // nothing is known of the provider but its dialect
	Quirks   Quirks // of its servers
	Model    string // that is asked for when a request does not tell; may be empty

	blockForm content.Wire // what every block of the dialect begins with
}

// newTarget is a provider's wire format.
func NewTarget(d *Dialect, provider string, generic bool, q Quirks) Target {
	return Target{Dialect: d, Provider: provider, Generic: generic, Quirks: q, blockForm: content.Form{Dialect: d.Name}.Wire()}
}

// asked is the target of a request.
func (t Target) ForSettings(s llm.Settings) Target {
	if s.Model != "" {
		t.Model = s.Model
	}
	return t
}

// form is what every block of this dialect begins with.
func (t Target) BlockForm() content.Wire { return t.blockForm }

// typed is the form of a block whose type on the wire is not told by its kind.
func (t Target) TypedForm(kind string) content.Wire {
	return content.Form{Dialect: t.Dialect.Name, Type: kind}.Wire()
}

// own tells whether a block came from this dialect, so that its form fits here.
func (t Target) Owns(b content.Block) bool { return b.Form().Dialect == t.Dialect.Name }

// opens tells whether a seal may go to this target: only where it was minted, to
// a model of the same family.
func (t Target) CanOpen(s content.Seal) bool {
	dialect, model, _ := strings.Cut(s.Minted, "/")
	return s.Data != "" && dialect == t.Dialect.Name && sameFamily(model, t.Model)
}

// foreign tells whether a block has the seal of another model.
func (t Target) HasForeignSeal(b content.Block) bool {
	seal := b.Form().Seal
	return seal.Data != "" && !t.CanOpen(seal)
}

// sameFamily tells whether two names may be models of one family: the name of the
// first is in the second, whatever stands before and after it (a vendor, a region,
// a version), or the reverse. An empty name may be any model.
func sameFamily(a, b string) bool {
	if a == "" || b == "" || strings.EqualFold(a, b) {
		return true
	}
	x, y := letterRuns(a), letterRuns(b)
	return len(x) > 0 && len(y) > 0 && (containsFold(y, x[0]) || containsFold(x, y[0]))
}

func containsFold(list []string, word string) bool {
	for _, w := range list {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// words is the runs of letters in the last part of a model's name. On Bedrock that
// may begin with a region, before the vendor: us.anthropic.claude-opus.
func letterRuns(model string) []string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if region, rest, _ := strings.Cut(model, "."); region != "" {
		if _, name, _ := strings.Cut(rest, "."); name != "" && unicode.IsLetter(rune(rest[0])) && unicode.IsLetter(rune(name[0])) {
			model = rest
		}
	}
	return strings.FieldsFunc(model, func(r rune) bool { return !unicode.IsLetter(r) })
}
