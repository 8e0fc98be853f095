package recorder

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/contentcoding"
)

// kept is the headers of an answer that are written down, by the name they get. No
// other header is, of a request none at all.
var kept = map[string]string{
	"X-Request-Id": "request_id", "Request-Id": "request_id", "X-Amzn-Requestid": "request_id", "Apim-Request-Id": "request_id",
	"X-Generation-Id": "request_id", "Retry-After": "retry_after",
}

// ids is what of the headers of an answer is written down.
func (x *exchange) ids(h http.Header) map[string]string {
	all := map[string]string{}
	for name, as := range kept {
		if value := h.Get(name); value != "" {
			all[as] = x.hide(value)
		}
	}
	return all
}

// open is the headers of a request that have no secret in them. What the others
// have is taken out of the words of an error: servers repeat it.
var open = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Connection", "Content-Encoding", "Content-Length",
	"Content-Type", "Host", "Idempotency-Key", "Openai-Beta", "User-Agent",
}

// hidden stands where a secret stood.
const hidden = "[secret]"

// secretsOf is what a request carries that must not be written down, the longest
// first.
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
		if !slices.Contains(open, name) && !slices.ContainsFunc(identity, func(known string) bool { return strings.EqualFold(known, name) }) && !strings.HasPrefix(name, "X-Stainless-") {
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

// hide is a text without the secrets of the request. All that is written down of
// headers and errors goes through it.
func (x *exchange) hide(text string) string {
	for _, secret := range x.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// words returns the body of a response as it came, without secrets.
func (x *exchange) words() string {
	text, err := contentcoding.Decode(x.came, x.response.Get("Content-Encoding"), maxBody)
	if err != nil {
		text = x.came
	}
	return x.hide(string(text))
}

// identity is the headers of a request that say whose it is, and how its body is encoded. No
// other header is kept.
var identity = []string{
	"User-Agent", "Content-Encoding", "X-Tract-Session", "X-Tract-Agent", "X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id", "X-Claude-Code-Parent-Agent-Id",
	"Session-Id", "Session_id", "Thread-Id", "X-Codex-Parent-Thread-Id", "X-Codex-Turn-Metadata", "X-Session-Id", "X-Session-Affinity", "X-Parent-Session-Id",
}

// identityOf returns the headers that say whose a request is.
func identityOf(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if slices.ContainsFunc(identity, func(known string) bool { return strings.EqualFold(known, name) }) {
			kept[http.CanonicalHeaderKey(name)] = values
		}
	}
	return kept
}
