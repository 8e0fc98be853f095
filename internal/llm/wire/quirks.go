package wire

// Quirks are the differences of a server from others that use its dialect. The zero value is
// a server without differences.
type Quirks struct {
	MaxTokensField string // the field for the output limit; empty: max_tokens
	KeyHeader      string // the header for the key; empty: Authorization

	// ReasoningField is the field for plain reasoning that did not come in a field; empty:
	// reasoning_content. Reasoning that came in a field is sent back in that field, unless
	// Strict is set.
	ReasoningField string
	// NoReasoningField: the server refuses a field with plain reasoning, so none is sent.
	NoReasoningField bool
	// Strict: the server refuses a message with a field that it does not know, so only
	// documented fields are sent.
	Strict bool
	// PlainReasoning: the server accepts reasoning only in a plain field, so reasoning without
	// a seal is sent there, whatever its original form.
	PlainReasoning bool
	// ReasoningDetails: the server's own form of reasoning is reasoning_details.
	ReasoningDetails bool
	// ThinkingParts: the server's own form of reasoning is parts of type thinking.
	ThinkingParts bool
	// RefusalField: a refusal is sent back in its own field, even if Strict is set.
	RefusalField bool
	// NoStreamOptions: stream_options is not sent, because the server refuses or ignores it.
	NoStreamOptions bool
	// EffortObject is the field for the reasoning settings when it is an object.
	EffortObject string
	// OffMembers is a JSON object of body members that turn reasoning off; empty: the effort
	// none does.
	OffMembers string
	// BudgetField is the server's own field for a thinking budget.
	BudgetField string
	// CallID returns a call id in a form that the server accepts; nil: it accepts any.
	CallID func(id string) string
	// TagsPaired: think tags always come in pairs, so a closing tag alone is text.
	TagsPaired bool
}
