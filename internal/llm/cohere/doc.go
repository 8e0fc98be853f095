// Package cohere has the dialect of version 2 of Cohere's chat, [Cohere]. Its
// messages of users and tools are those of OpenAI's chat.
package cohere
