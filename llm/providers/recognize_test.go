package providers

import (
	"net/url"
	"testing"
)

func TestRecognize(t *testing.T) {
	for _, test := range []struct{ address, api, provider, model string }{
		{"https://api.openai.com/v1/chat/completions", "chat", "openai", ""},
		{"https://api.openai.com/v1/responses", "responses", "openai-responses", ""},
		{"https://api.openai.com/v1/responses/resp_1", "", "", ""},
		{"https://api.openai.com/v1/models", "", "", ""},
		{"https://api.anthropic.com/v1/messages", "messages", "anthropic", ""},
		{"https://api.anthropic.com/v1/messages?beta=true", "messages", "anthropic", ""},
		{"https://api.anthropic.com/v1/messages/count_tokens", "", "", ""},
		{"https://api.deepseek.com/v1/chat/completions", "chat", "deepseek", ""},
		{"http://localhost:8080/v1/chat/completions", "chat", "chat", ""},
		{"http://127.0.0.1:11434/api/chat", "ollama", "ollama", ""},
		{"http://127.0.0.1:11434/api/generate", "ollama", "ollama", ""},
		{"http://127.0.0.1:11434/api/embed", "", "", ""},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=k", "gemini", "google", "gemini-2.5-pro"},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude%3A0/converse-stream", "converse", "bedrock", "us.anthropic.claude:0"},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/m/invoke", "invoke", "bedrock", "m"},
		{"https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", "chat", "azure", ""},
		{"https://me.openai.azure.com/openai/v1/responses", "responses", "azure-responses", ""},
		{"https://api.cohere.com/v2/chat", "cohere", "cohere", ""},
		{"https://api.cohere.com/v1/chat", "cohere", "cohere", ""},
	} {
		u, err := url.Parse(test.address)
		if err != nil {
			t.Fatal(err)
		}
		api, provider, model, ok := Recognize(u)
		if api != test.api || provider != test.provider || model != test.model || ok != (test.api != "") {
			t.Errorf("%s: have %q %q %q %t, want %q %q %q", test.address, api, provider, model, ok, test.api, test.provider, test.model)
		}
	}
}
