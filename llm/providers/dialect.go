package providers

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// dialect is a wire format. Each is one file that registers one of these.
type dialect struct {
	name string

	// path is where requests go, below the base URL, escaped as in a URL. A query may
	// follow.
	path func(model string, stream bool) string
	// sign puts the key, which may be empty, and what else the format demands
	// into the headers.
	sign func(h http.Header, t target, key string)
	// headers puts what a request body needs beside it into the headers; nil: nothing.
	headers func(h http.Header, t target, body rawjson.Value)
	// read starts reading one response.
	read func(o *output) reader
	// encode writes a request body.
	encode func(t target, req *llm.Request) (rawjson.Value, error)
	// replay writes what stands for one response in the next request; nil when
	// nothing of it can be sent.
	replay func(t target, blocks []content.Block) rawjson.Value
	// wantsTurn tells whether an open tool loop must go back with its thoughts.
	wantsTurn func(t target) bool
	// request reads the messages, tools and settings of a request body, an object;
	// nil where nobody wrote it yet. It ends with settle.
	request func(t target, v rawjson.Value) (*llm.Request, error)
	// talk begins to read the messages of a request; nil where they are not read one
	// by one.
	talk func(t target) talk
	// outline says what a request body says, for the rules that all dialects have
	// in common; rules are what its servers refuse beyond them. Both may be nil.
	outline func(body rawjson.Value) []said
	rules   []rule

	// unasked is the fields of a body that encode sets though no setting asks for
	// them; a server that does not know one is asked without it. off is the fields
	// that ask a model not to reason.
	unasked, off [][]string
	needsModel   bool // a request without the name of a model cannot be sent
}

// reader reads one response and puts what it finds into an output. Values are
// valid during the call only. An error of event or whole ends the response.
type reader interface {
	// whole reads a response that came in one piece.
	whole(v rawjson.Value) error
	// event reads one event of a stream. io.EOF says that it was the last.
	event(name string, v rawjson.Value) error
	// end is called once, when no event comes any more. It puts out what it held
	// back and tells whether the answer is whole. said is whether the framing said
	// that the stream ends.
	end(said bool) bool
}

// signBearer sends the key in the usual header.
func signBearer(h http.Header, _ target, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// target is one model's wire format.
type target struct {
	dialect  *dialect
	provider string // its name, as in the table of providers
	generic  bool   // nothing is known of the provider but its dialect
	quirks   quirks // of its servers
	model    string // that is asked for when a request does not tell; may be empty

	blockForm content.Wire // what every block of the dialect begins with
}

// newTarget is a provider's wire format.
func newTarget(d *dialect, provider string, generic bool, q quirks) target {
	return target{dialect: d, provider: provider, generic: generic, quirks: q, blockForm: content.Form{Dialect: d.name}.Wire()}
}

// asked is the target of a request.
func (t target) asked(s llm.Settings) target {
	if s.Model != "" {
		t.model = s.Model
	}
	return t
}

// form is what every block of this dialect begins with.
func (t target) form() content.Wire { return t.blockForm }

// typed is the form of a block whose type on the wire is not told by its kind.
func (t target) typed(kind string) content.Wire {
	return content.Form{Dialect: t.dialect.name, Type: kind}.Wire()
}

// own tells whether a block came from this dialect, so that its form fits here.
func (t target) own(b content.Block) bool { return b.Form().Dialect == t.dialect.name }

// opens tells whether a seal may go to this target: only where it was minted, to
// a model of the same family.
func (t target) opens(s content.Seal) bool {
	dialect, model, _ := strings.Cut(s.Minted, "/")
	return s.Data != "" && dialect == t.dialect.name && sameFamily(model, t.model)
}

// foreign tells whether a block has the seal of another model.
func (t target) foreign(b content.Block) bool {
	seal := b.Form().Seal
	return seal.Data != "" && !t.opens(seal)
}

// sameFamily tells whether two names may be models of one family: the name of the
// first is in the second, whatever stands before and after it (a vendor, a region,
// a version), or the reverse. An empty name may be any model.
func sameFamily(a, b string) bool {
	if a == "" || b == "" || strings.EqualFold(a, b) {
		return true
	}
	x, y := words(a), words(b)
	return len(x) > 0 && len(y) > 0 && (has(y, x[0]) || has(x, y[0]))
}

func has(list []string, word string) bool {
	for _, w := range list {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// words is the runs of letters in the last part of a model's name. On Bedrock that
// may begin with a region, before the vendor: us.anthropic.claude-opus.
func words(model string) []string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if region, rest, _ := strings.Cut(model, "."); region != "" {
		if _, name, _ := strings.Cut(rest, "."); name != "" && unicode.IsLetter(rune(rest[0])) && unicode.IsLetter(rune(name[0])) {
			model = rest
		}
	}
	return strings.FieldsFunc(model, func(r rune) bool { return !unicode.IsLetter(r) })
}
