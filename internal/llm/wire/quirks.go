package wire

// Quirks are where a server differs from the others that speak its dialect.
type Quirks struct {
	MaxTokensField string // the field for the output limit; empty: max_tokens
	KeyHeader      string // the header for the key; empty: Authorization

	// ReasoningField is the field for plain reasoning that did not come in one; empty:
	// reasoning_content. Reasoning that did goes back in its own field, unless the server
	// knows only this one (Strict).
	ReasoningField string
	// NoReasoningField: the server refuses a field with plain reasoning, so none is sent.
	NoReasoningField bool
	// Strict: the server refuses a message with a field that it does not know, so only
	// documented fields are sent.
	Strict bool
	// PlainReasoning: the server knows reasoning in a plain field only, so that reasoning
	// without a seal goes there whatever form it came in.
	PlainReasoning bool
	// ReasoningDetails: the server's own form of reasoning is reasoning_details.
	ReasoningDetails bool
	// ThinkingParts: the server's own form of reasoning is parts of type thinking.
	ThinkingParts bool
	// RefusalField: a refusal goes back in its own field, although the server is strict.
	RefusalField bool
	// NoStreamOptions: stream_options is refused or useless.
	NoStreamOptions bool
	// EffortObject is the field for the reasoning settings when it is an object.
	EffortObject string
	// OffMembers are the members of a body that ask a model not to reason; empty: the
	// effort none.
	OffMembers string
	// BudgetField is the server's own field for a thinking budget.
	BudgetField string
	// CallID returns an id of a call that the server takes; nil: it takes any.
	CallID func(id string) string
	// TagsPaired: think tags come in pairs or not at all; a closing tag alone is text.
	TagsPaired bool
}
