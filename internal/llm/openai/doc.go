// Package openai has the dialects of OpenAI: [Chat], the chat completions API, which many
// other vendors implement too, and [Responses], the Responses API.
//
// Callers do not use the dialects directly: package [github.com/tract-vcs/tract/llm/providers]
// finds them by name. Another dialect whose messages are like those of Chat embeds
// [ChatMessageReader] and calls [OutlineChat].
//
// Both dialects promise that a response is sent back as it came: a member that has no block
// or field is kept in a block's extra. The dialects do no I/O and no retries: that is the
// work of package providers.
package openai
