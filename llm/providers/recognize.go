package providers

import (
	"net/url"
	"slices"
	"strings"
)

// Recognize returns the dialect, the provider and, if the path names it, the model of a
// request, given its URL. The path determines the dialect, and the host the provider. For an
// unknown host, the provider is the name of the dialect. ok is false for other paths, such as
// those that count tokens or list models.
func Recognize(u *url.URL) (api, provider, model string, ok bool) {
	path := strings.TrimRight(u.EscapedPath(), "/")
	for _, way := range endpoints {
		rest, found := strings.CutSuffix(path, way.end)
		if !found || !strings.Contains(rest, way.of) {
			continue
		}
		if way.named {
			name, err := url.PathUnescape(rest[strings.LastIndexByte(rest, '/')+1:])
			if err != nil || name == "" {
				return "", "", "", false
			}
			model = name
		}
		return way.api, providerOrDialectAt(u.Hostname(), way.api), model, true
	}
	return "", "", "", false
}

// endpoints lists the suffixes of the paths of model requests. named is true if the path has
// the name of the model before the suffix; of is a text that the path must contain before it.
var endpoints = []struct {
	end, api string
	named    bool
	of       string
}{
	{end: "/chat/completions", api: "chat"},
	{end: "/responses", api: "responses"},
	{end: "/v1/messages", api: "messages"},
	{end: "/interactions", api: "interactions"},
	{end: ":generateContent", api: "gemini", named: true},
	{end: ":streamGenerateContent", api: "gemini", named: true},
	{end: ":rawPredict", api: "messages", named: true, of: "/publishers/anthropic/"},       // Vertex AI
	{end: ":streamRawPredict", api: "messages", named: true, of: "/publishers/anthropic/"}, // Vertex AI
	{end: "/agents/completions", api: "chat"},                                              // Mistral
	{end: "/converse", api: "converse", named: true},
	{end: "/converse-stream", api: "converse", named: true},
	{end: "/invoke", api: "invoke", named: true},
	{end: "/invoke-with-response-stream", api: "invoke", named: true},
	{end: "/v2/chat", api: "cohere"},
	{end: "/v1/chat", api: "cohere"},
	{end: "/api/chat", api: "ollama"},
	{end: "/api/generate", api: "ollama"},
}

// regionalHosts maps a part of a host name to the provider, for providers whose host names
// depend on the account or the region.
var regionalHosts = map[string]string{".openai.azure.com": "azure", "bedrock-runtime.": "bedrock"}

// providerOrDialectAt returns the name of the provider whose host and dialect these are; if there
// is none, the name of the dialect.
func providerOrDialectAt(host, dialect string) string {
	for _, name := range Names() {
		p, _ := Lookup(name)
		own, err := url.Parse(p.BaseURL)
		if name == p.Name && p.Dialect == dialect && err == nil && p.BaseURL != "" && !isLoopbackHost(own.Hostname()) && strings.EqualFold(own.Hostname(), host) {
			return p.Name
		}
	}
	for part, name := range regionalHosts {
		if !strings.Contains(host, part) {
			continue
		}
		for _, known := range []string{name, name + "-" + dialect} {
			if p, found := Lookup(known); found && (p.Dialect == dialect || dialect == "invoke") {
				return p.Name
			}
		}
	}
	return dialect
}

// isLoopbackHost reports whether a host is this machine, where any server may run.
func isLoopbackHost(host string) bool {
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host)
}
