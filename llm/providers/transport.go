package providers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// How a request is sent.
//
// send makes one attempt after another; sendOnce is one HTTP exchange. After a network error,
// or a status that may be temporary, send waits as long as the provider asks for, else for a
// random delay that grows, and tries again up to Config.Retries times. If a server refuses a
// field that tract added without being asked, or the setting that turns reasoning off,
// dropRefusedField changes the body, and send tries again at once; this does not count as a
// retry. As soon as the first byte of a response has arrived, nothing is sent again. An
// idleTimer limits the wait for the response and each pause in it. All errors pass through
// secrets.maskError.

const (
	firstDelay    = 500 * time.Millisecond // delay limit before the first retry; doubled for each further one
	maxDelay      = 8 * time.Second
	maxRetryAfter = time.Minute // the longest delay that a provider may ask for; if it asks for more, the request fails
	maxErrorBody  = 1 << 20     // largest number of bytes read from the body of an error
)

// newHTTPClientWithoutProxy returns an HTTP client that ignores proxy settings of the environment.
func newHTTPClientWithoutProxy() *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}}
}

// checkRedirect allows a redirect only if method, scheme and host stay the same, because any
// other host would get the key and the conversation.
func checkRedirect(next *http.Request, via []*http.Request) error {
	from := via[0]
	if len(via) > 3 || next.Method != from.Method || next.URL.Host != from.URL.Host || next.URL.Scheme != from.URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// openResponse is a response whose first byte has arrived, or its end.
type openResponse struct {
	body      io.Reader
	closer    io.Closer
	sent      []byte
	from      llm.Address
	target    wire.Target
	requestID string
	secrets   secrets
}

// attempt is the state of one request that is sent once or several times.
type attempt struct {
	*Client
	target wire.Target
	stream bool
	url    *url.URL
	body   []byte

	retryable bool          // the last attempt failed, and another may succeed
	wait      time.Duration // the delay that the provider asked for; 0: none
}

// send sends a request until a response begins or another attempt would not help.
func (c *Client) send(ctx context.Context, req *llm.Request) (*openResponse, error) {
	t := c.target.ForSettings(req.Settings)
	if err := c.checkBaseURLKeyAndModel(t); err != nil {
		return nil, err
	}
	body := req.Body
	if body == nil {
		var err error
		if body, err = c.Encode(req); err != nil {
			return nil, err
		}
	}
	r := &attempt{Client: c, target: t, stream: req.Stream, url: c.endpoint(t, req.Stream), body: body}
	for n := 0; ; {
		a, err := r.sendOnce(ctx)
		if err == nil {
			if req.OnSent != nil {
				req.OnSent(a.sent)
			}
			return a, nil
		}
		if r.dropRefusedField(req, err) {
			continue
		}
		pause := r.wait
		if pause <= 0 {
			pause = jitter(n)
		}
		if !r.retryable || n >= c.config.Retries || pause > maxRetryAfter {
			return nil, err
		}
		n++
		c.log("%v: retrying in %s (%d of %d)", err, pause.Round(time.Millisecond), n, c.config.Retries)
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("ask %s: %w", t.Provider, err)
		}
	}
}

// dropRefusedField removes the field that the server refused with err from the body of r, or
// changes its value, if that is allowed. It reports whether it changed the body, so that the
// request can be sent again.
func (r *attempt) dropRefusedField(req *llm.Request, err error) bool {
	var api *llm.APIError
	if !errors.As(err, &api) || api.Status != http.StatusBadRequest {
		return false
	}
	if body := withoutOptionalField(r.target, api, r.body, req.Settings.Extra); body != nil {
		r.log("%s does not know a field that tract added: sending the request without it", r.target.Provider)
		r.body = body
		return true
	}
	body, effort := withReasoningOn(r.target, api, r.body, req.Settings)
	if body == nil {
		return false
	}
	warnCannotStop(req, r.target, effort)
	r.body = body
	return true
}

// log passes a line to Config.Log.
func (c *Client) log(format string, args ...any) {
	if c.config.Log != nil {
		c.config.Log(fmt.Sprintf(format, args...))
	}
}

// jitter returns the delay before retry n+1: a random duration between half of a limit and the
// limit, which doubles with n. It is random so that clients that failed together do not retry
// together.
func jitter(n int) time.Duration {
	pause := min(firstDelay<<min(n, 10), maxDelay)
	return pause/2 + rand.N(pause/2)
}

// sleep waits for d, or until ctx ends, and then returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// sendOnce sends the request once and returns the response when its first byte has arrived.
func (r *attempt) sendOnce(ctx context.Context) (*openResponse, error) {
	r.retryable, r.wait = false, 0
	clock, ctx := newIdleTimer(ctx, r.url.Host)
	req, hide, err := r.newRequest(ctx)
	if err != nil {
		clock.stopAndCancel()
		return nil, hide.maskError(err)
	}
	clock.setLimit(r.config.HeaderTimeout)
	res, err := r.http.Do(req) //nolint:bodyclose // timedBody closes it
	if err != nil {
		defer clock.stopAndCancel()
		return nil, r.networkError(clock, hide, err)
	}
	var body io.ReadCloser = &timedBody{body: res.Body, watch: clock, idle: r.config.IdleTimeout}
	if res.StatusCode/100 != 2 {
		defer body.Close()
		return nil, hide.maskError(r.refusalError(res, body, hide))
	}
	begun := bufio.NewReader(body)
	if _, err := begun.Peek(1); err != nil && err != io.EOF { // the connection broke before the first byte
		defer body.Close()
		return nil, r.networkError(clock, hide, err)
	}
	from := r.Address()
	from.Model = r.target.Model
	return &openResponse{
		body: begun, closer: body, sent: r.body, from: from, target: r.target, requestID: requestID(res.Header), secrets: hide,
	}, nil
}

// newRequest returns the signed HTTP request and its secrets.
func (r *attempt) newRequest(ctx context.Context) (*http.Request, secrets, error) {
	hide := secrets{}
	hide.add(r.config.APIKey)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, hide, fmt.Errorf("ask %s: %w", r.target.Provider, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", "tract")
	r.target.Dialect.Sign(req.Header, r.target, r.config.APIKey)
	if headers := r.target.Dialect.Headers; headers != nil {
		headers(req.Header, r.target, r.body)
	}
	for name, value := range r.config.Headers {
		req.Header.Set(name, value)
	}
	if r.config.Auth != nil {
		err = r.config.Auth(req)
	}
	hide.addFrom(req)
	if err != nil {
		return nil, hide, fmt.Errorf("ask %s: authorize: %w", r.target.Provider, err)
	}
	return req, hide, nil
}

// networkError returns the error for a request without a response, and sets r.retryable. If
// the client canceled the request, the error is the cause.
func (r *attempt) networkError(clock *idleTimer, hide secrets, err error) error {
	if cause := clock.cause(); cause != nil {
		return fmt.Errorf("ask %s: %w", r.target.Provider, cause)
	}
	if where := (*url.Error)(nil); errors.As(err, &where) {
		err = where.Err // the URL may contain a key
	}
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	r.retryable = !errors.As(err, &cert) && !(errors.As(err, &name) && name.IsNotFound)
	return &llm.NetworkError{Provider: r.target.Provider, Host: r.url.Host, Err: hide.maskError(err)}
}

// refusalError returns the error for a status that is not 2xx, and sets r.retryable and r.wait.
// It masks secrets before it cuts the message, so that no part of a secret remains.
func (r *attempt) refusalError(res *http.Response, body io.Reader, hide secrets) error {
	provider := r.target.Provider
	if to, err := res.Location(); err == nil && res.StatusCode/100 == 3 {
		return &llm.APIError{
			Provider: provider, Status: res.StatusCode, Type: "redirect",
			Message: fmt.Sprintf("it redirects to %s://%s; neither the key nor the conversation is sent there: set it as the base URL if it is right", to.Scheme, to.Host),
		}
	}
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // if the text breaks off, the status is enough
	e := httpError(provider, res, []byte(hide.mask(string(text))))
	r.retryable, r.wait = e.Temporary(), e.RetryAfter
	if res.Header.Get("X-Should-Retry") == "false" {
		r.retryable = false
	}
	return e
}

// withoutOptionalField returns the body without the optional field that error e refuses; nil
// when e refuses no such field, or settingsExtra sets it.
func withoutOptionalField(t wire.Target, e *llm.APIError, body, settingsExtra []byte) []byte {
	for _, path := range t.Dialect.OptionalFields {
		v, err := rawjson.Parse(body)
		last := path[len(path)-1]
		if err != nil || v.Get(path...) == nil || rawjson.Value(settingsExtra).Get(path[0]) != nil || !mentions(e, last) {
			continue
		}
		return withoutMember(v, path)
	}
	return nil
}

// effortOrder lists the efforts in ascending order.
var effortOrder = []string{wire.EffortNone, "minimal", "low", "medium", "high"}

// withReasoningOn returns the body, changed for a model that error e says cannot turn reasoning
// off: with the lowest effort that e names, else without the field. effort is that effort, or
// empty. changed is nil when e is about something else.
func withReasoningOn(t wire.Target, e *llm.APIError, body []byte, s llm.Settings) (changed []byte, effort string) {
	if !wire.IsReasoningOff(s.Reasoning) {
		return nil, ""
	}
	for _, path := range t.Dialect.ReasoningOffFields {
		v, err := rawjson.Parse(body)
		value := v.Get(path...)
		about := mentions(e, path[len(path)-1]) || mentions(e, "thinking") || mentions(e, "reasoning")
		if err != nil || value == nil || rawjson.Value(s.Extra).Get(path[0]) != nil || !about {
			continue
		}
		if asked := slices.Index(effortOrder, value.Text()); asked >= 0 {
			for _, effort := range effortOrder[asked+1:] {
				if strings.Contains(e.Message, "'"+effort+"'") {
					return replaceMember(v, path, rawjson.AppendString(nil, effort)), effort
				}
			}
		}
		return withoutMember(v, path), ""
	}
	return nil, ""
}

// warnCannotStop warns the caller that the model reasons although the settings turn reasoning
// off. effort is the effort that is sent instead; empty: none.
func warnCannotStop(req *llm.Request, t wire.Target, effort string) {
	if req.OnWarning == nil {
		return
	}
	instead := "sending the request without the setting"
	if effort != "" {
		instead = "requesting its lowest effort: " + effort
	}
	req.OnWarning(llm.Problem{
		Rule: wire.RuleCannotStop, Warning: true,
		Message: fmt.Sprintf("%s refuses to turn reasoning off for %s: %s", t.Provider, cmp.Or(t.Model, "the model"), instead),
	})
}

// mentions reports whether an error is about a field. It ignores case and underscores, because
// Google spells its fields in two ways. For a model that does not reason, Google does not name
// the field includeThoughts.
func mentions(e *llm.APIError, field string) bool {
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	text := fold(e.Param + " " + e.Message)
	return strings.Contains(text, fold(field)) || field == "includeThoughts" && strings.Contains(text, "thinking is not")
}

// withoutMember returns object v without the member at a path.
func withoutMember(v rawjson.Value, path []string) rawjson.Value { return replaceMember(v, path, nil) }

// replaceMember returns object v with newValue for the member at a path. An absent member stays
// absent. If newValue is nil, the member is removed, and so are objects on the path that become
// empty.
func replaceMember(v rawjson.Value, path []string, newValue rawjson.Value) rawjson.Value {
	var o rawjson.Object
	for key, value := range v.Members() {
		switch {
		case key != path[0]:
		case len(path) > 1:
			value = rawjson.NonEmptyObject(replaceMember(value, path[1:], newValue))
		default:
			value = newValue
		}
		o.Set(key, value)
	}
	return bytes.Clone(o.Bytes())
}
