package providers

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Config is the configuration of a [Client]. Most fields may be empty.
type Config struct {
	Model   string // the model for requests that name none
	BaseURL string // replaces the vendor's; the path of the dialect is appended
	Dialect string // replaces the provider's dialect

	// APIKey is sent in the header that the provider reads. It never appears in an error or
	// in a log line.
	APIKey string
	// Auth signs a complete request, once for each attempt. Secrets that it puts into the
	// usual headers do not appear in errors either.
	Auth func(*http.Request) error
	// Headers are sent with each request. They replace the headers that tract would send.
	Headers map[string]string

	// HTTP sends the requests; its redirect policy is replaced. If it is nil, requests go
	// directly to the host, and proxy settings of the environment are ignored.
	HTTP *http.Client
	// Retries is how often a failed request is sent again, if that may help and no part of a
	// response arrived. 0 means 2; a negative number means never.
	Retries int
	// HeaderTimeout limits the time until the response begins, IdleTimeout each pause in
	// it. 0 means ten and five minutes; a negative value means no limit.
	HeaderTimeout, IdleTimeout time.Duration

	Log func(line string) // is called with what the client does on its own, such as a retry; may be nil
}

// Format writes the model, the dialect and the host, for every verb. For secrets it writes only
// whether they are set.
func (c Config) Format(to fmt.State, _ rune) {
	host := c.BaseURL
	if u, err := url.Parse(c.BaseURL); err != nil || u.Host != "" {
		host = ""
		if err == nil {
			host = u.Host
		}
	}
	fmt.Fprintf(to, "model %q, dialect %q, host %q, key %t, auth %t, %d headers", c.Model, c.Dialect, host, c.APIKey != "", c.Auth != nil, len(c.Headers))
}

// Defaults for zero values in a Config.
const (
	defaultRetries       = 2
	defaultHeaderTimeout = 10 * time.Minute
	defaultIdleTimeout   = 5 * time.Minute
)

// Open returns a client for a provider, given by one of its [Names]. The name
// openai-compatible, or an empty name, stands for any server with the chat dialect; such a
// server needs a BaseURL. For an unknown name, Open returns an [*UnknownError] unless
// Config.Dialect is set. Open sends nothing and needs no key.
func Open(name string, c Config) (*Client, error) {
	if p, _ := Lookup(name); c.Dialect == "" && p.compatible != "" && strings.HasSuffix(strings.TrimRight(c.BaseURL, "/"), compatiblePath) {
		c.Dialect = p.compatible
	}
	t, profile, known, err := targetAndProfile(c.Dialect, name)
	if err != nil {
		return nil, fmt.Errorf("open provider %q: %w", name, err)
	}
	if !known && c.Dialect == "" && (name != "" || c.BaseURL == "") {
		return nil, newUnknownError(name)
	}
	t.Model = c.Model
	client := &Client{target: t, profile: profile, config: c, http: newHTTPClientWithoutProxy()}
	if c.HTTP != nil {
		copied := *c.HTTP
		client.http = &copied
	}
	client.http.CheckRedirect = checkRedirect
	client.config.APIKey = strings.TrimSpace(c.APIKey)
	base := c.BaseURL
	if base == "" {
		base = profile.BaseURL
		if t.Dialect.Name == profile.compatible {
			base += compatiblePath
		}
	}
	if base != "" {
		if client.base, err = url.Parse(base); err != nil || client.base.Host == "" || client.base.Scheme != "http" && client.base.Scheme != "https" {
			return nil, fmt.Errorf("open provider %q: base URL: want http://HOST or https://HOST", name)
		}
	}
	if client.config.Retries == 0 {
		client.config.Retries = defaultRetries
	}
	if client.config.HeaderTimeout == 0 {
		client.config.HeaderTimeout = defaultHeaderTimeout
	}
	if client.config.IdleTimeout == 0 {
		client.config.IdleTimeout = defaultIdleTimeout
	}
	return client, nil
}

// compatiblePath is the path below which some servers offer a second dialect.
const compatiblePath = "/v1"

// targetOrGeneric returns the target of a model of a provider; a generic one for an unknown
// provider. An empty dialect stands for the provider's, which is chat if the provider is unknown.
func targetOrGeneric(dialect, provider, model string) (wire.Target, error) {
	t, _, _, err := targetAndProfile(dialect, provider)
	t.Model = model
	return t, err
}

// targetAndProfile returns the target, without a model, and the profile of a provider. An empty
// dialect stands for the provider's. known reports whether the provider is in the table; the
// profile of an unknown provider has the chat dialect.
func targetAndProfile(dialect, provider string) (t wire.Target, p Profile, known bool, err error) {
	p, known = Lookup(provider)
	if !known {
		p = Profile{Name: provider, Dialect: "chat"}
	}
	if dialect == "" {
		dialect = p.Dialect
	}
	name, found := FindDialect(dialect)
	if !found {
		return wire.Target{}, p, known, fmt.Errorf("dialect %q: want one of %s", dialect, strings.Join(Dialects(), ", "))
	}
	generic := p.BaseURL == "" && len(p.KeyEnv) == 0
	return wire.NewTarget(dialectNamed(name), p.Name, generic, p.quirks), p, known, nil
}

// Decode reads one response body without a client, as [llm.Target].Decode does, for any
// dialect and framing. The provider and the model may be empty, and the provider may be
// unknown.
func Decode(api, provider, model string, body io.Reader, f llm.Framing) iter.Seq2[llm.Event, error] {
	t, err := targetOrGeneric(api, provider, model)
	if err != nil {
		return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, fmt.Errorf("decode: %w", err)) }
	}
	return t.Decode(body, f)
}

// Replay returns the part of the next request that repeats one response, as JSON; nil when
// nothing of the response can be sent. See [Decode] for the first three parameters.
func Replay(api, provider, model string, blocks []content.Block) ([]byte, error) {
	t, err := targetOrGeneric(api, provider, model)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := content.CheckBlocks(blocks); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return t.Replay(blocks), nil
}

// missingKeyError is the error for a provider that needs a key and has none.
type missingKeyError struct{ profile Profile }

func (e *missingKeyError) Error() string {
	if len(e.profile.KeyEnv) == 0 {
		return fmt.Sprintf("ask %s: %v", e.profile.Name, llm.ErrNoKey)
	}
	return fmt.Sprintf("ask %s: %v: it is looked for in %s", e.profile.Name, llm.ErrNoKey, strings.Join(e.profile.KeyEnv, ", "))
}

func (e *missingKeyError) Unwrap() error { return llm.ErrNoKey }

// Hint returns how to set the key.
func (e *missingKeyError) Hint() string {
	if len(e.profile.KeyEnv) == 0 {
		return "give a key"
	}
	return "set " + e.profile.KeyEnv[0]
}
