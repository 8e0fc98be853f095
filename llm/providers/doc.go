// Package providers asks the models of many vendors, each in its own wire format.
//
// A dialect is a wire format; the dialects are packages below internal/llm. A provider
// is a row of one table: its host, the dialect that it speaks, and where its servers
// differ. For most uses:
//
//	client, err := providers.Open("deepseek", providers.Config{APIKey: key, Model: "deepseek-chat"})
//
// The [Client] is an [llm.Client], [llm.Streamer] and [llm.Target]. It reads no
// environment and no files: keys, proxies and base URLs are given to [Open].
//
// Without a client, [Decode] reads a response body, [Feed] a response that another
// program receives, and [DecodeRequest] a request body; [Recognize] tells the dialect
// and the provider of a request from its URL.
//
// Promises:
//   - Which server answered is never guessed from the names of models. Decoding looks at
//     the fields that are there, so that a compatible server without a row works.
//   - Members that a dialect does not know are kept with the block they came with.
//     Decoding and encoding give a provider its own items back, as the same JSON with the
//     same bytes in every string. The same holds for requests of other programs.
//   - A seal is sent only to the dialect and the family of models that made it.
//   - Of a stream that breaks off, the blocks that were whole are there, beside
//     [llm.ErrTruncated]. Of a broken response in one piece nothing is.
//
// # The dialects
//
//	chat          OpenAI's chat completions, which many vendors speak
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
