// Package openai has the dialects of OpenAI: [Chat], the chat completions, which
// many other vendors speak, and [Responses].
package openai
