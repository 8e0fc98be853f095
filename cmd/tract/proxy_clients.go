package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// proxyClient is an agent whose base URL tract proxy knows how to set.
type proxyClient struct {
	name      string   // name of the executable
	variables []string // environment variables that take the base URL
	suffix    string   // suffix that the client wants in the base URL
	provider  string   // default provider: upstream of requests whose path does not name one

	// arguments returns arguments to put before the user's arguments; nil: none.
	arguments func(base string) []string

	// file is the configuration file for the base URL of a client without a variable, and content
	// is the text to write into it; tract never writes it.
	file    string
	content func(base string) string
}

// proxyClients lists the agents that tract knows.
func proxyClients() []proxyClient {
	return []proxyClient{
		{name: "claude", variables: []string{"ANTHROPIC_BASE_URL"}, provider: "anthropic"},
		{
			name: "codex", variables: []string{"OPENAI_BASE_URL"}, suffix: "/v1", provider: "openai",
			arguments: func(base string) []string { return []string{"-c", fmt.Sprintf("openai_base_url=%q", base)} },
		},
		{name: "gemini", variables: []string{"GOOGLE_GEMINI_BASE_URL"}, provider: "google"},
		{
			name: "opencode", suffix: "/v1", file: "opencode.json",
			content: func(base string) string {
				return fmt.Sprintf(`{
  "provider": {
    "anthropic": {"options": {"baseURL": %q}},
    "openai": {"options": {"baseURL": %q}}
  }
}`, base, base)
			},
		},
		{
			name: "pi", file: "~/.pi/agent/models.json",
			content: func(base string) string {
				return fmt.Sprintf(`{
  "providers": {
    "anthropic": {"baseUrl": %q},
    "openai": {"baseUrl": %q}
  }
}`, base, base+"/v1")
			},
		},
	}
}

// anyClient is a program that tract does not know: it gets the variables that the SDKs of the
// providers read.
var anyClient = proxyClient{}

// findClient returns the client of an executable.
func findClient(executable string) (proxyClient, bool) {
	name := strings.TrimSuffix(filepath.Base(executable), ".exe")
	list := proxyClients()
	i := slices.IndexFunc(list, func(c proxyClient) bool { return c.name == name })
	if i < 0 {
		return anyClient, false
	}
	return list[i], true
}

// firstPartyVariable makes Claude Code treat a base URL as Anthropic's own host: otherwise it
// leaves out tool search and sends larger requests.
const firstPartyVariable = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"

// sdkVariables are the variables of the SDKs of the providers, with the suffix that each wants.
var sdkVariables = [][2]string{{"ANTHROPIC_BASE_URL", ""}, {"OPENAI_BASE_URL", "/v1"}, {"GOOGLE_GEMINI_BASE_URL", ""}}

// environment returns the variables to set for a client behind a proxy, as NAME=VALUE. lookup
// reads the present environment; firstParty reports whether the upstream of the Anthropic API
// is Anthropic's own host.
func (c proxyClient) environment(base string, lookup func(string) (string, bool), firstParty bool) []string {
	var list []string
	for _, v := range sdkVariables {
		if c.variables == nil || slices.Contains(c.variables, v[0]) {
			list = append(list, v[0]+"="+base+v[1])
		}
	}
	if _, set := lookup(firstPartyVariable); firstParty && !set && slices.Contains(c.variables, "ANTHROPIC_BASE_URL") {
		list = append(list, firstPartyVariable+"=1")
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} { // loopback never goes through a company's proxy
		old, set := lookup(name)
		if old != "" {
			old += ","
		}
		if set || name == "NO_PROXY" {
			list = append(list, name+"="+old+"127.0.0.1,localhost")
		}
	}
	return list
}

// inheritedUpstreams returns the base URLs that are already set in the environment. The proxy
// replaces them for the agent, and uses them as its upstreams.
func inheritedUpstreams(lookup func(string) (string, bool)) (map[string]*url.URL, error) {
	upstreams := map[string]*url.URL{}
	for name, provider := range map[string]string{"ANTHROPIC_BASE_URL": "anthropic", "OPENAI_BASE_URL": "openai", "GOOGLE_GEMINI_BASE_URL": "google"} {
		value, _ := lookup(name)
		if value == "" {
			continue
		}
		u, err := parseUpstream(value)
		if err != nil {
			return nil, fmt.Errorf("%s=%q: %w", name, value, err)
		}
		upstreams[provider] = u
	}
	return upstreams, nil
}

// parseUpstream parses the base URL of a provider.
func parseUpstream(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("want a URL such as https://api.example.com/v1")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("want a URL that begins with http:// or https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("want a URL without a user, a query and a fragment")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}
