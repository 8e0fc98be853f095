// Package providers sends requests to the models of many vendors, each in its own wire
// format.
//
// A dialect is a wire format; the dialects are packages below internal/llm. A provider
// is a row of one table: its host, the dialect that it uses, and how its servers differ
// from others of that dialect. For most uses:
//
//	client, err := providers.Open("deepseek", providers.Config{APIKey: key, Model: "deepseek-chat"})
//
// The [Client] is an [llm.Client], [llm.Streamer] and [llm.Target]. It reads no
// environment and no files: the caller passes keys, proxies and base URLs to [Open].
//
// Without a client, [Decode] reads a response body, [Feed] a response that another
// program receives, and [DecodeRequest] a request body, or [DecodeNextRequest] one that repeats
// an earlier one; [Recognize] finds the dialect and the provider of a request by its URL.
//
// Promises:
//   - Decoding never guesses the server from the name of a model. It looks at the fields
//     that are present, so a compatible server without a row works too.
//   - Members that a dialect does not know are kept with the block they came with.
//     Decoding and encoding give a provider its own items back, as the same JSON with the
//     same bytes in every string. The same holds for requests of other programs.
//   - A seal is sent only to the dialect and the family of models that made it.
//   - A stream that breaks gives its complete blocks and [llm.ErrTruncated]. A broken
//     response that is not streamed gives no blocks.
//
// # The dialects
//
//	chat          OpenAI's chat completions, which many vendors implement
//	responses     OpenAI's Responses
//	messages      Anthropic's messages
//	invoke        the same through Amazon Bedrock's InvokeModel
//	converse      Amazon Bedrock's Converse
//	gemini        Google's generateContent
//	interactions  Google's Interactions
//	cohere        version 2 of Cohere's chat
//	ollama        Ollama's own /api/chat
//
// What this package does not do: choose a model, route or fall back between providers,
// cache, or limit rates. To add a provider or a dialect see docs/adding-a-provider.md.
package providers
