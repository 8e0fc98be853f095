package wire

// quirks is where a server differs from what all that speak its dialect have in
// common.
type Quirks struct {
	MaxTokensField string // the field for the output limit; empty: max_tokens
	KeyHeader      string // the header that takes the key; empty: Authorization

	// thought is the field for a plain thought that did not come in one; empty:
	// reasoning_content. A thought that did goes back in its own field, unless the
	// server knows only this one (strict).
	ReasoningField string
	// silent: no plain thought may be sent, the server refuses the field.
	NoReasoningField bool
	// strict: a message with a field that the server does not know is refused, so
	// nothing is sent but what is documented.
	Strict bool
	// plain: it knows thoughts in a plain field only, so that one without a seal goes
	// there whatever form it came in.
	PlainReasoning bool
	// details: its own form of thoughts is reasoning_details.
	ReasoningDetails bool
	// chunks: its own form of thoughts is parts of type thinking in a content.
	ThinkingParts bool
	// refusal: a refusal goes back in its own field, though the server is strict.
	RefusalField bool
	// noStreamOptions: stream_options is refused or pointless.
	NoStreamOptions bool
	// effort is the field for the reasoning settings when it is an object.
	EffortObject string
	// off is the members of a body that ask a model not to reason; empty: those that
	// tell an effort, with none.
	OffMembers string
	// budget is the field for a thinking budget of its own.
	BudgetField string
	// id makes an id of a call one that the server takes; nil: it takes any.
	CallID func(id string) string
	// solo: think tags come with both tags or not at all; a closing one alone is
	// text.
	TagsPaired bool
}
