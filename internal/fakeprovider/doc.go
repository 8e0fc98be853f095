// Package fakeprovider is a model provider for tests. [New] returns an http.Handler that speaks
// Anthropic messages, OpenAI responses and chat completions, and Gemini generateContent,
// streamed or not, as far as agents and SDKs need it.
//
// It answers by scripts: the last user text with the word PLAN:NAME chooses the script, and the
// number of model turns since then chooses the step. A step reasons, says something, and calls
// tools of the client by their kind (run a command, read a file, ask a sub-agent). A step may
// refuse the first try with a status, or cut its stream. Nothing is random, so that the same
// requests give the same responses.
package fakeprovider
