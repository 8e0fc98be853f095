package providers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encoder is the version of Encode's output. It is increased when the same request gives
// other bytes than before in any dialect.
const encoder = 2

// Client sends requests to the models of one provider. It is an [llm.Client], [llm.Streamer] and
// [llm.Target], and is safe for use by several goroutines at once. [Open] returns one.
type Client struct {
	profile Profile
	target  wire.Target
	config  Config
	base    *url.URL // nil: there is no base URL
	http    *http.Client
}

var (
	_ llm.Client   = (*Client)(nil)
	_ llm.Streamer = (*Client)(nil)
	_ llm.Target   = (*Client)(nil)

	_ llm.ReasoningKeeper = (*Client)(nil)
)

// Address returns the provider, its dialect, the model for requests that name none, and
// the host.
func (c *Client) Address() llm.Address {
	a := llm.Address{Provider: c.target.Provider, Dialect: c.target.Dialect.Name, Model: c.target.Model, Encoder: encoder}
	if c.base != nil {
		a.Endpoint = c.base.Host
	}
	return a
}

// NeedsReasoningInToolLoop reports whether an open tool loop must be sent back with its
// reasoning.
func (c *Client) NeedsReasoningInToolLoop() bool {
	return c.target.NeedsReasoningInToolLoop()
}

// Encode returns the request body. Equal requests give equal bytes.
func (c *Client) Encode(req *llm.Request) ([]byte, error) {
	for i, m := range req.Messages {
		if err := content.CheckBlocks(m.Blocks); err != nil {
			return nil, fmt.Errorf("encode request: message %d: %w", i+1, err)
		}
	}
	t := c.target.ForSettings(req.Settings)
	body, err := t.Encode(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	if _, err := rawjson.Parse(body); err != nil {
		return nil, fmt.Errorf("encode request: a tool or a setting is no JSON: %w", err)
	}
	return body, nil
}

// Decode reads a response body in any framing.
func (c *Client) Decode(body io.Reader) iter.Seq2[llm.Event, error] {
	return c.target.Decode(body, llm.FramingAuto)
}

// Generate sends the request and returns the whole response, streamed or not. The response
// holds the bodies of the request and of the response.
func (c *Client) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	a, err := c.send(ctx, req)
	if err != nil {
		return nil, err
	}
	defer a.closer.Close()
	var raw bytes.Buffer
	reply, err := llm.Collect(a.decodeEventsFrom(io.TeeReader(a.body, &raw)), nil)
	if reply != nil {
		reply.Raw, reply.Sent, reply.From = raw.Bytes(), a.sent, a.from
	}
	return reply, err
}

// Stream sends the request and yields the events of the response. A response that is not
// streamed is yielded block by block.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a, err := c.send(ctx, req)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		defer a.closer.Close()
		a.decodeEventsFrom(a.body)(yield)
	}
}

// decodeEventsFrom yields the events of the response, read from body, which it does not close. Its
// errors contain no secrets.
func (a *openResponse) decodeEventsFrom(body io.Reader) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for e, err := range a.target.Decode(body, llm.FramingAuto) {
			if err != nil {
				var api *llm.APIError
				if errors.As(err, &api) && api.RequestID == "" {
					api.RequestID = a.requestID
				}
				yield(e, a.secrets.maskError(err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Check returns the reasons why the provider would refuse a request.
func (c *Client) Check(req *llm.Request) []llm.Problem { return wire.Check(c.target, req) }

// NeedsReasoningAfterToolLoop reports whether the model needs the reasoning of every turn with
// tool calls in all later requests.
func (c *Client) NeedsReasoningAfterToolLoop(s llm.Settings) bool {
	return c.target.ForSettings(s).WantsReasoningBack(s.Reasoning) != nil
}

// endpoint returns the URL for requests of t. The base URL may already end with the first
// element of the dialect's path, or with all of it.
func (c *Client) endpoint(t wire.Target, stream bool) *url.URL {
	u := *c.base
	path, query, asks := strings.Cut(t.Dialect.Path(t.Model, stream), "?")
	if asks {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
	}
	base := strings.TrimRight(u.Path, "/")
	first, _, _ := strings.Cut(path[1:], "/")
	switch {
	case strings.HasSuffix(base, path):
		path = ""
	case strings.HasSuffix(base, "/"+first):
		path = path[1+len(first):]
	}
	u.Path, u.RawPath, u.Fragment = base+path, "", ""
	if text, err := url.PathUnescape(path); err == nil && text != path { // a model's name may contain escaped slashes
		u.Path, u.RawPath = base+text, (&url.URL{Path: base}).EscapedPath()+path
	}
	return &u
}

// checkBaseURLKeyAndModel returns an error when the base URL, the key or the model is missing.
func (c *Client) checkBaseURLKeyAndModel(t wire.Target) error {
	p := c.profile
	if c.base == nil {
		if p.base != "" {
			return fmt.Errorf("ask %s: no base URL: want one like %s", p.Name, p.base)
		}
		return fmt.Errorf("ask %s: no base URL: it has none of its own", p.Name)
	}
	own := false
	if vendor, err := url.Parse(p.BaseURL); err == nil && p.BaseURL != "" {
		own = strings.EqualFold(vendor.Host, c.base.Host)
	}
	if p.NeedsKey && own && c.config.APIKey == "" && c.config.Auth == nil && !c.headersHaveKey() {
		return &missingKeyError{p}
	}
	if t.Model == "" && (p.NeedsKey && own || t.Dialect.NeedsModel) {
		return fmt.Errorf("ask %s: no model: name one in the settings or the request", p.Name)
	}
	return nil
}

// headersHaveKey reports whether the configured headers contain a key.
func (c *Client) headersHaveKey() bool {
	for name := range c.config.Headers {
		if secretName().MatchString(name) {
			return true
		}
	}
	return false
}

// String returns the provider, the dialect and the host; never the key.
func (c *Client) String() string {
	a := c.Address()
	return fmt.Sprintf("%s (%s) at %s", a.Provider, a.Dialect, cmp.Or(a.Endpoint, "no host"))
}

// Format writes String for every verb, so that %+v and %#v show no key either.
func (c Client) Format(to fmt.State, _ rune) { fmt.Fprint(to, c.String()) }
