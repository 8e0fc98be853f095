// Package providers speaks the wire formats of model providers.
//
// A dialect is a wire format: chat (OpenAI-compatible chat completions) and
// messages (Anthropic). A provider is a name in one table: whose host it is,
// which dialect it speaks, and the few facts of its wire that differ. For most
// uses:
//
//	client, err := providers.Open("deepseek", providers.Config{APIKey: key, Model: "deepseek-chat"})
//
// The [Client] is an [llm.Client], [llm.Streamer] and [llm.Target]. It reads no
// environment and no files: keys, proxies and base URLs are given to [Open].
// Which server answered is never guessed from the names of models: decoding looks
// at the fields that are there, so a compatible server that nobody heard of works.
//
// What a dialect does not know is kept with the block it came with, so that
// decoding and encoding give a provider its own items back, JSON-equal and with
// every string the same bytes. Seals go back only to the dialect and the family of
// models that minted them. To add a dialect, write one file that registers it.
package providers
