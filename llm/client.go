package llm

import (
	"context"
	"io"
	"iter"
	"strings"

	"github.com/tract-vcs/tract/content"
)

// Client asks a model. It may be used by many goroutines at once.
type Client interface {
	// Generate sends the request and returns the whole answer. What it costs is
	// paid: with an error it returns what came before it broke, or nil. An answer
	// that broke off has Incomplete set. The blocks are committed as they are.
	Generate(ctx context.Context, req *Request) (*Response, error)
}

// Streamer is a client that yields the response while it arrives.
type Streamer interface {
	// Stream sends the request and yields what comes. The error of a stream that
	// breaks is its last element; the events before it hold. Leaving the loop
	// ends the request.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}

// ReasoningExtractor is a client whose responses may have reasoning inside their text. It
// is asked only when no block of a response is reasoning.
type ReasoningExtractor interface {
	// ExtractReasoning returns the blocks of the response with the reasoning taken
	// out of its text as blocks of kind reasoning, in order; nil: there are none.
	ExtractReasoning(r *Response) []content.Block
}

// Target is one model's wire format, without a network: what turns a request
// into a body and a body into events.
type Target interface {
	// Address says whose wire format it is.
	Address() Address
	// Encode gives the whole request body. Equal requests give equal bytes.
	Encode(req *Request) ([]byte, error)
	// Decode reads a response body, in whatever framing it has, and yields what
	// it says. It ends as [Streamer].Stream does.
	Decode(body io.Reader) iter.Seq2[Event, error]
	// NeedsReasoningInToolLoop reports whether an open tool loop must go back with its reasoning.
	NeedsReasoningInToolLoop() bool
}

// ReasoningKeeper is a target some of whose models refuse a request that lacks reasoning
// of earlier turns.
type ReasoningKeeper interface {
	// NeedsReasoningAfterToolLoop reports whether the model of the settings, or of the target where
	// they name none, wants the reasoning of every turn with tool calls in all later
	// requests, also when the turn is closed.
	NeedsReasoningAfterToolLoop(s Settings) bool
}

// Address is where a request goes. Empty parts are not known.
type Address struct {
	Provider string // a name such as anthropic
	Dialect  string // the wire format: chat, messages, ...
	Model    string
	Endpoint string // host
	Encoder  int    // version of what Encode makes; grows when the same request gives other bytes
}

// Request is what a model is asked.
type Request struct {
	Messages []content.Message
	Tools    []Tool
	Settings Settings
	Stream   bool // ask for the answer as it comes

	// Body is what Encode made of all this. When it is set it is what is sent.
	Body []byte

	// OnSent is called with the body of the request that is being answered, which is not
	// Body when the client had to ask anew without a part of it. It may be nil.
	OnSent func(body []byte)

	// OnWarning is called with what the provider did not do as asked. It may be nil.
	OnWarning func(Problem)
}

// Settings is how a model is asked. The zero value leaves everything to the provider.
type Settings struct {
	Model           string
	MaxOutputTokens int // 0: the provider's default, where it has one
	Temperature     *float64
	ToolChoice      string // auto, none, required or the name of a tool; empty: unsaid
	Reasoning       Reasoning
	Extra           []byte // a JSON object, merged into the body
}

// Reasoning is how a model is asked to reason. The names and values are those of the
// settings.
type Reasoning struct {
	Disabled  bool   // ask for no reasoning, whatever the effort and the budget
	Hidden    bool   // do not ask for reasoning to be shown or sealed
	Effort    string // none, minimal, low, medium, high, xhigh, max; empty: unsaid
	Summary   string // auto, concise, detailed, none; empty: unsaid
	MaxTokens int    // thinking budget; 0: unsaid
	Native    bool   // send past reasoning in the dialect's own form, not the plain field
}

// Tool is what a model may call.
type Tool struct {
	Name        string
	Description string
	Schema      []byte // JSON Schema of the arguments
	Native      []byte // the definition as JSON when it is a provider's own tool; then the rest may be empty
}

// Response is a model's answer.
type Response struct {
	Head
	From       Address         // who answered
	Blocks     []content.Block // in the order of the wire
	Incomplete bool            // it broke off: the last block may be cut
	Raw        []byte          // the body as it came, where the client keeps it
	Sent       []byte          // the request body as it was sent, where the client knows it
}

// Head is what a response says about itself.
type Head struct {
	ID     string
	Model  string // as the provider names it
	Finish string // its own word for why it ended
	Usage  content.Usage
}

// Text returns the text of the response: all text blocks of the model, joined without a
// separator.
func (r *Response) Text() string {
	var text strings.Builder
	for _, b := range r.Blocks {
		if b.Kind() == content.KindAssistant {
			text.WriteString(b.String())
		}
	}
	return text.String()
}

// Reasoning returns all readable reasoning, joined with blank lines.
func (r *Response) Reasoning() string {
	text := ""
	for _, b := range r.Blocks {
		if b.Kind() != content.KindReasoning || b.String() == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += b.String()
	}
	return text
}

// ToolCalls returns the calls that wait for a result: not those that the provider ran.
func (r *Response) ToolCalls() []content.ToolCall {
	var calls []content.ToolCall
	for _, b := range r.Blocks {
		if c, ok := b.(content.ToolCall); ok && !c.Server {
			calls = append(calls, c)
		}
	}
	return calls
}
