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

// Config says how a provider is reached. Most fields may be empty.
type Config struct {
	Model   string // that is asked when a request names none
	BaseURL string // in the place of the vendor's; the path of the dialect is put behind it
	Dialect string // the wire format, in the place of the one that the provider speaks

	// APIKey is sent in the header that the provider takes it in. It never shows in
	// an error or in what is logged.
	APIKey string
	// Auth signs a request that is ready to be sent, once for each try. What it puts
	// into the usual headers is kept out of errors too.
	Auth func(*http.Request) error
	// Headers is sent with each request, in the place of what tract would send.
	Headers map[string]string

	// HTTP does the requests. Its redirect rule is replaced. Without one, requests
	// go straight to the host: no proxy is asked of the environment.
	HTTP *http.Client
	// Retries is how often a request is sent again that was not answered, when that
	// may help and nothing of an answer came. 0 stands for 2; less is none.
	Retries int
	// HeaderTimeout is how long an answer may take to begin, IdleTimeout how long it
	// may pause. 0 stands for ten and five minutes; less is for ever.
	HeaderTimeout, IdleTimeout time.Duration

	Log func(line string) // is called with what the client does by itself, such as a retry
}

// Format writes the model, the dialect and the host, for every verb. Of secrets it only
// writes whether they are set.
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

// What stands for zero in a Config.
const (
	defaultRetries       = 2
	defaultHeaderTimeout = 10 * time.Minute
	defaultIdleTimeout   = 5 * time.Minute
)

// Open returns a client for a provider, by one of its [Names]. The name openai-compatible,
// or an empty name, is any server that speaks chat and needs a BaseURL. Another name is an
// [*UnknownError], unless Config.Dialect says what the server speaks. Open sends nothing
// and needs no key.
func Open(name string, c Config) (*Client, error) {
	if p, _ := Lookup(name); c.Dialect == "" && p.compatible != "" && strings.HasSuffix(strings.TrimRight(c.BaseURL, "/"), compatiblePath) {
		c.Dialect = p.compatible
	}
	t, profile, known, err := find(c.Dialect, name)
	if err != nil {
		return nil, fmt.Errorf("open provider %q: %w", name, err)
	}
	if !known && c.Dialect == "" && (name != "" || c.BaseURL == "") {
		return nil, newUnknownError(name)
	}
	t.Model = c.Model
	client := &Client{target: t, profile: profile, config: c, http: newHTTPClient()}
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

// compatiblePath is where a server offers a second dialect.
const compatiblePath = "/v1"

// targetOf returns a model of a provider; api may name another dialect than the
// provider's.
func targetOf(api, provider, model string) (wire.Target, error) {
	t, _, _, err := find(api, provider)
	t.Model = model
	return t, err
}

// find returns the target and the profile of a provider; api may name another dialect.
// known reports whether the provider is in the table.
func find(api, provider string) (t wire.Target, p Profile, known bool, err error) {
	p, known = Lookup(provider)
	if !known {
		p = Profile{Name: provider, Dialect: "chat"}
	}
	if api == "" {
		api = p.Dialect
	}
	name, found := FindDialect(api)
	if !found {
		return wire.Target{}, p, known, fmt.Errorf("dialect %q: want one of %s", api, strings.Join(Dialects(), ", "))
	}
	generic := p.BaseURL == "" && len(p.KeyEnv) == 0
	return wire.NewTarget(dialectNamed(name), p.Name, generic, p.quirks), p, known, nil
}

// Decode reads one response body without a client: what [llm.Target].Decode
// does, for any dialect and framing. The provider and the model may be empty; an
// unknown provider is one that nothing is known of.
func Decode(api, provider, model string, body io.Reader, f llm.Framing) iter.Seq2[llm.Event, error] {
	t, err := targetOf(api, provider, model)
	if err != nil {
		return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, fmt.Errorf("decode: %w", err)) }
	}
	return t.Decode(body, f)
}

// Replay returns the part of the next request that stands for one response, as JSON; nil
// when nothing of it can be sent. Its parameters are those of [Decode].
func Replay(api, provider, model string, blocks []content.Block) ([]byte, error) {
	t, err := targetOf(api, provider, model)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := content.CheckBlocks(blocks); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return t.Replay(blocks), nil
}

// missingKeyError is the error for a provider without a key.
type missingKeyError struct{ profile Profile }

func (e *missingKeyError) Error() string {
	if len(e.profile.KeyEnv) == 0 {
		return fmt.Sprintf("ask %s: %v", e.profile.Name, llm.ErrNoKey)
	}
	return fmt.Sprintf("ask %s: %v: it is looked for in %s", e.profile.Name, llm.ErrNoKey, strings.Join(e.profile.KeyEnv, ", "))
}

func (e *missingKeyError) Unwrap() error { return llm.ErrNoKey }

// Hint returns what to do about it.
func (e *missingKeyError) Hint() string {
	if len(e.profile.KeyEnv) == 0 {
		return "give a key"
	}
	return "set " + e.profile.KeyEnv[0]
}
