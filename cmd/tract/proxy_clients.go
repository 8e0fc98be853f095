package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// proxyClient is an agent whose base URL tract proxy knows how to set. In its arguments and content,
// proxyBase stands for the base URL of the proxy.
type proxyClient struct {
	name      string   // name of the executable
	provider  string   // upstream of requests whose path does not name one; the client reads the variable of this provider
	arguments []string // to put before the user's arguments

	// file is the configuration file for the base URL of a client without a variable, and content
	// is the text to write into it; tract never writes it.
	file, content string
}

// proxyBase stands for the base URL of the proxy.
const proxyBase = "BASE"

// proxyClients lists the agents that tract knows.
var proxyClients = []proxyClient{
	{name: "claude", provider: "anthropic"},
	{name: "codex", provider: "openai", arguments: []string{"-c", `openai_base_url="BASE/v1"`}},
	{name: "gemini", provider: "google"},
	{name: "opencode", file: "opencode.json", content: `{
  "provider": {
    "anthropic": {"options": {"baseURL": "BASE/v1"}},
    "openai": {"options": {"baseURL": "BASE/v1"}}
  }
}`},
	{name: "pi", file: "~/.pi/agent/models.json", content: `{
  "providers": {
    "anthropic": {"baseUrl": "BASE"},
    "openai": {"baseUrl": "BASE/v1"}
  }
}`},
}

// findClient returns the client of an executable. A program that tract does not know is the zero
// client: it gets the variables that the SDKs of all providers read.
func findClient(executable string) (c proxyClient, known bool) {
	name := strings.TrimSuffix(filepath.Base(executable), ".exe")
	i := slices.IndexFunc(proxyClients, func(c proxyClient) bool { return c.name == name })
	if i < 0 {
		return proxyClient{}, false
	}
	return proxyClients[i], true
}

// argumentsFor returns the arguments to put before the user's arguments.
func (c proxyClient) argumentsFor(base string) []string {
	return mapSlice(c.arguments, func(text string) string { return strings.ReplaceAll(text, proxyBase, base) })
}

// firstPartyVariable makes Claude Code treat a base URL as Anthropic's own host: otherwise it
// leaves out tool search and sends larger requests.
const firstPartyVariable = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"

// sdkVariables are the variables that the SDKs of the providers read, with the suffix that each wants.
var sdkVariables = []struct{ name, provider, suffix string }{
	{"ANTHROPIC_BASE_URL", "anthropic", ""},
	{"OPENAI_BASE_URL", "openai", "/v1"},
	{"GOOGLE_GEMINI_BASE_URL", "google", ""},
}

// environment returns the variables to set for a client behind a proxy, as NAME=VALUE. lookup reads the
// present environment; firstParty reports whether the upstream of the Anthropic API is Anthropic's own host.
func (c proxyClient) environment(base string, lookup func(string) (string, bool), firstParty bool) []string {
	var list []string
	for _, v := range sdkVariables {
		if c.provider == "" || c.provider == v.provider {
			list = append(list, v.name+"="+base+v.suffix)
		}
	}
	if _, set := lookup(firstPartyVariable); firstParty && !set && c.provider == "anthropic" {
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
	for _, v := range sdkVariables {
		value, _ := lookup(v.name)
		if value == "" {
			continue
		}
		u, err := parseUpstream(value)
		if err != nil {
			return nil, fmt.Errorf("%s=%q: %w", v.name, value, err)
		}
		upstreams[v.provider] = u
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
