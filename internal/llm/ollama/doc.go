// Package ollama has the dialect of Ollama's own /api/chat, [Ollama].
package ollama
