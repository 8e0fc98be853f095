package proxy

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/tract-vcs/tract/llm/providers"
)

// A Target is where a request is sent.
type Target struct {
	Provider string   // name of the vendor or upstream
	URL      *url.URL // without the query
}

// vendorOf returns the vendor whose API a path belongs to, with or without the prefix of a provider;
// empty if the path does not tell it.
func vendorOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "/p/"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		path = "/" + rest
	}
	switch {
	case strings.HasPrefix(path, "/v1/messages"), strings.HasPrefix(path, "/v1/complete"), strings.HasPrefix(path, "/api/"):
		return "anthropic"
	case strings.HasPrefix(path, "/v1beta/"), strings.HasPrefix(path, "/v1alpha/"), strings.HasPrefix(path, "/upload/v1beta/"), strings.Contains(path, ":generateContent"), strings.Contains(path, ":streamGenerateContent"):
		return "google"
	case strings.HasPrefix(path, "/v1/"), strings.HasPrefix(path, "/models"), strings.HasPrefix(path, "/responses"), strings.HasPrefix(path, "/chat/"):
		return "openai"
	}
	return ""
}

// route returns the target of a request with an escaped path:
//
//	/p/NAME/REST      the upstream or vendor NAME
//	/v1/messages...   anthropic
//	/v1beta/...       google
//	/v1/..., /models  openai, but anthropic with an anthropic-version header
//	anything else     the default; without one, the API of the headers, or else openai
//
// ok is false for a NAME that is unknown, or that has no base URL of its own.
func (p *Proxy) route(req *http.Request, path string) (t Target, ok bool) {
	if rest, found := strings.CutPrefix(path, "/p/"); found {
		name, rest, _ := strings.Cut(rest, "/")
		return p.target(name, "/"+rest)
	}
	name := vendorOf(path)
	switch {
	case req.Header.Get("Anthropic-Version") != "":
		name = "anthropic"
	case name == "" && req.Header.Get("X-Goog-Api-Key") != "":
		name = "google"
	case name == "":
		name = cmp.Or(p.o.Default, "openai")
	}
	return p.target(name, path)
}

// version matches a path that begins with the version of an API.
var version = regexp.MustCompile(`^/v[0-9][a-z0-9]*/`)

// target joins an escaped path to the base URL of a provider. A path that begins with that of the base
// URL is not joined twice: clients put /v1 into their base URL, or they do not. Neither is one
// that begins with another version of the API.
func (p *Proxy) target(name, path string) (Target, bool) {
	base := p.o.Upstreams[name]
	if base == nil {
		profile, _ := providers.Lookup(name)
		own, _ := url.Parse(profile.BaseURL) // without a host if there is no such vendor, or its host depends on the account
		name = profile.Name
		if base = cmp.Or(p.o.Upstreams[name], own); base == nil || base.Host == "" {
			return Target{}, false
		}
	}
	u := *base
	prefix := strings.TrimSuffix(base.EscapedPath(), "/")
	hasPrefix := path == prefix || strings.HasPrefix(path, prefix+"/")
	otherVersion := version.FindString(prefix+"/") == prefix+"/" && version.MatchString(path)
	if prefix != "" && (hasPrefix || otherVersion) {
		prefix = ""
	}
	joined := prefix + path
	unescaped, err := url.PathUnescape(joined)
	if err != nil {
		return Target{}, false
	}
	u.Path, u.RawPath = unescaped, joined
	return Target{Provider: name, URL: &u}, true
}

type targetKey struct{}

// TargetOf returns the target of a request that a [Proxy] forwards; for any other request it
// has no provider.
func TargetOf(ctx context.Context) Target {
	t, _ := ctx.Value(targetKey{}).(Target)
	return t
}
