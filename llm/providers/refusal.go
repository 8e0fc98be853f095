package providers

import (
	"bytes"
	"errors"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	known "github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/llm"
)

// maxMessage is the largest length of an error message, in bytes.
const maxMessage = 4 << 10

// truncateMessage cuts a text to maxMessage bytes.
func truncateMessage(text string) string {
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

// httpError returns the error for a response with a status that is not 2xx.
func httpError(provider string, res *http.Response, body []byte) *llm.APIError {
	e := &llm.APIError{Provider: provider}
	if v, err := rawjson.Parse(body); err == nil {
		if e = wire.NewAPIError(provider, v); e.Message == "" && v.Kind() == rawjson.KindObject {
			e.Message = string(rawjson.Excerpt(v))
		}
		e.Message, e.RequestID = truncateMessage(e.Message), v.Get("request_id").Text()
	} else {
		e.Message = plainMessage(body)
	}
	if e.Message == "" {
		e.Message = http.StatusText(res.StatusCode)
	}
	e.Status = res.StatusCode
	if e.Type == "" { // Amazon appends a colon and the URI of the type
		e.Type, _, _ = strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":")
	}
	if after := retryAfter(res.Header, time.Now()); after > 0 {
		e.RetryAfter = after
	}
	if e.RequestID == "" {
		e.RequestID = requestID(res.Header)
	}
	return e
}

// requestID returns the provider's id of the request; empty if no header has it.
func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "X-Generation-Id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// plainMessage returns the error message in a body that is not JSON: the title of an HTML page,
// else an excerpt of the body.
func plainMessage(body []byte) string {
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	if i := bytes.IndexByte(body, '<'); i < 0 || len(bytes.TrimSpace(body[:i])) > 0 {
		return string(rawjson.Excerpt(body))
	}
	lower := bytes.ToLower(body)
	for _, tag := range []string{"title", "h1"} {
		_, rest, found := bytes.Cut(lower, []byte("<"+tag))
		if !found {
			continue
		}
		start := len(lower) - len(rest)
		start += 1 + bytes.IndexByte(rest, '>')
		if end := bytes.Index(lower[start:], []byte("</"+tag)); end >= 0 && len(lower) == len(body) {
			if text := strings.Join(strings.Fields(html.UnescapeString(string(body[start:start+end]))), " "); text != "" {
				return truncateMessage(text)
			}
		}
	}
	return string(rawjson.Excerpt(body))
}

// retryAfter returns the delay that the headers ask for before the next request; 0 if they ask
// for none. now is the current time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if at, err := http.ParseTime(after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// maskedKey is the text that replaces a secret.
const maskedKey = "[key]"

// secrets lists texts that no message may contain, longest first.
type secrets []string

// add adds a secret. It ignores texts of fewer than 4 bytes, because they occur in ordinary
// text too.
func (s *secrets) add(text string) {
	text = strings.TrimSpace(text)
	if len(text) < 4 {
		return
	}
	for _, t := range []string{text, strings.ReplaceAll(text, " ", "+")} { // a form encodes a space as +
		if !slices.Contains(*s, t) {
			*s = append(*s, t)
		}
	}
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// secretName matches the names of headers and query parameters that hold secrets.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)key|token|secret|auth|cookie|password|sig`)
})

// addFrom adds the secrets in the headers and the URL of a request.
func (s *secrets) addFrom(r *http.Request) {
	for name, values := range r.Header {
		for _, value := range values {
			if !secretName().MatchString(name) {
				break
			}
			s.add(value)
			if _, token, ok := strings.Cut(value, " "); ok {
				s.add(token)
			}
		}
	}
	if password, ok := r.URL.User.Password(); ok {
		s.add(password)
	}
	for name, values := range r.URL.Query() {
		for _, value := range values {
			if secretName().MatchString(name) {
				s.add(value)
			}
		}
	}
}

// mask returns a text in which the secrets of the request, and other secrets that a provider
// may quote, are masked.
func (s secrets) mask(text string) string {
	for _, secret := range s {
		text = known.ReplaceSecret(text, secret, maskedKey)
	}
	return known.Mask(text)
}

// maskError returns err with its secrets masked.
func (s secrets) maskError(err error) error {
	if err == nil {
		return nil
	}
	if api := (*llm.APIError)(nil); errors.As(err, &api) {
		for _, field := range []*string{&api.Type, &api.Message, &api.Param, &api.RequestID} {
			*field = s.mask(*field)
		}
		if raw := s.mask(string(api.Raw)); raw != string(api.Raw) {
			api.Raw = []byte(raw)
		}
	}
	if text := err.Error(); s.mask(text) != text {
		return &redactedError{text: s.mask(text), err: err}
	}
	return err
}

// redactedError is an error whose original text had a secret. It cannot be unwrapped, so
// errors.As finds nothing inside; errors.Is works as before.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }
