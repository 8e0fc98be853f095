// Package google has the dialects of Google: [Gemini], the generateContent API, and
// [Interactions], the Interactions API.
//
// Callers do not use the dialects directly: package [github.com/tract-vcs/tract/llm/providers]
// finds them by name. Both dialects promise that a response is sent back as it came: a member
// that has no block or field is kept in a block's extra. The dialects do no I/O and no
// retries: that is the work of package providers.
package google
