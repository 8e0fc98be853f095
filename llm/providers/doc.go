// Package providers speaks the wire formats of model providers.
//
// A dialect is a wire format. A provider is a name in one table: whose host it is,
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
// models that minted them. Of a stream that breaks off, the blocks that were
// finished are there, beside [llm.ErrTruncated]; a response in one piece that
// breaks off is no JSON and has none.
//
// # The dialects
//
//	chat          OpenAI's chat completions, and what many others made of them
//	responses     OpenAI's Responses
//	messages      Anthropic's messages
//	invoke        the same through Bedrock's InvokeModel
//	converse      Amazon Bedrock's Converse
//	gemini        Google's generateContent
//	interactions  Google's Interactions
//	cohere        Cohere's chat, version 2
//	ollama        Ollama's own /api/chat
//
// The files of a dialect begin with its name: NAME.go registers it and reads
// responses, NAME_encode.go writes requests, NAME_settings.go tools and settings,
// NAME_request.go reads requests back, NAME_check.go knows what its servers refuse.
// What grew too large for one file is in more of that name.
//
// # What they share
//
//	dialect.go, output.go   what a dialect is; where a reader puts what it finds
//	decode.go, framing.go   a body becomes JSON texts, whatever it is wrapped in
//	prompt.go, encode.go    messages whose roles alternate, results in order; tools
//	                        and settings, bodies as servers take them
//	ids.go, media.go        ids of calls that another server takes; bytes and URLs
//	json.go, growth.go      an object taken apart; a value that comes in pieces
//	request.go, check.go    reading a request back; what all servers refuse
//	profiles.go             the table of providers
//	client.go, transport.go asking, with its errors, pauses and secrets
//	feed.go                 an answer that comes in pieces, from somebody else
//	recognize.go            whose request it is, by its address
//
// To add a dialect, write one file that registers it.
package providers
