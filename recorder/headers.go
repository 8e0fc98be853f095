package recorder

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// keptResponseHeaders maps the response headers that are kept to the names under which they are
// committed; those that describe the body are only in the spool. No other response header is kept.
var keptResponseHeaders = map[string]string{
	"X-Request-Id": "request_id", "Request-Id": "request_id", "X-Amzn-Requestid": "request_id", "Apim-Request-Id": "request_id",
	"X-Generation-Id": "request_id", "Retry-After": "retry_after", "Content-Encoding": "", "Content-Type": "",
}

// responseHeadersToKeep returns those response headers that are kept, without the secrets of the request.
func (x *exchange) responseHeadersToKeep(h http.Header) http.Header {
	kept := http.Header{}
	for name := range keptResponseHeaders {
		if value := h.Get(name); value != "" {
			kept.Set(name, x.redact(value))
		}
	}
	return kept
}

// responseHeadersToCommit returns the response headers that are committed.
func (x *exchange) responseHeadersToCommit() map[string]string {
	all := map[string]string{}
	for name, as := range keptResponseHeaders {
		if value := x.Response.Get(name); value != "" && as != "" {
			all[as] = value
		}
	}
	return all
}

// harmlessHeaders are request headers without secrets. The values of all other headers are
// redacted in error texts, because servers repeat them.
var harmlessHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Connection", "Content-Encoding", "Content-Length",
	"Content-Type", "Host", "Idempotency-Key", "Openai-Beta", "User-Agent",
	"X-Client-Request-Id", "X-Codex-Window-Id", "X-Openai-Subagent", // which Codex repeats in the body
}

// redacted replaces a secret.
const redacted = "[secret]"

// secretsOf returns the header values, query values and the password of a request that must not
// be stored, the longest first.
func secretsOf(req *http.Request) []string {
	var all []string
	add := func(values ...string) {
		for _, value := range values {
			_, token, _ := strings.Cut(value, " ")
			for _, text := range []string{value, token} {
				if len(text) >= 8 {
					all = append(all, text)
				}
			}
		}
	}
	for name, values := range req.Header {
		if !slices.Contains(harmlessHeaders, name) && !slices.ContainsFunc(identityHeaders, func(known string) bool { return strings.EqualFold(known, name) }) && !strings.HasPrefix(name, "X-Stainless-") {
			add(values...)
		}
	}
	for _, values := range req.URL.Query() {
		add(values...)
	}
	if password, has := req.URL.User.Password(); has {
		add(password)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// redact returns a text without the secrets of the request. All stored headers and errors go
// through it.
func (x *exchange) redact(text string) string {
	return string(x.redactBytes([]byte(text)))
}

// redactBytes is redact for bytes. It does not change them, but may return them.
func (x *exchange) redactBytes(data []byte) []byte {
	for _, secret := range x.secrets {
		if bytes.Contains(data, []byte(secret)) {
			data = bytes.ReplaceAll(data, []byte(secret), []byte(redacted))
		}
	}
	return data
}

// identityHeaders are the request headers that name the client and the conversation. No other request
// header is kept.
var identityHeaders = []string{
	"User-Agent", "X-Tract-Session", "X-Tract-Agent", "X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id", "X-Claude-Code-Parent-Agent-Id",
	"Session-Id", "Session_id", "Thread-Id", "X-Codex-Parent-Thread-Id", "X-Codex-Turn-Metadata", "X-Session-Id", "X-Session-Affinity", "X-Parent-Session-Id",
}

// identityHeadersOf returns the request headers that are in identityHeaders.
func identityHeadersOf(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if slices.ContainsFunc(identityHeaders, func(known string) bool { return strings.EqualFold(known, name) }) {
			kept[http.CanonicalHeaderKey(name)] = values
		}
	}
	return kept
}
