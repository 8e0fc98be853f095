package recorder

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// kept is the headers of an answer that are written down, by the name they get. No
// other header is, of a request none at all.
var kept = map[string]string{
	"X-Request-Id": "request_id", "Request-Id": "request_id", "X-Amzn-Requestid": "request_id", "Apim-Request-Id": "request_id",
	"X-Generation-Id": "request_id", "Retry-After": "retry_after",
}

// ids is what of the headers of an answer is written down.
func (c *call) ids(h http.Header) map[string]string {
	var all map[string]string
	for name, as := range kept {
		if value := h.Get(name); value != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[as] = c.hide(value)
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
		if !slices.Contains(open, name) && !strings.HasPrefix(name, "X-Stainless-") {
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
func (c *call) hide(text string) string {
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// refused writes down an answer that is an error.
func (c *call) refused(res *http.Response) error {
	text, err := c.words(res)
	if err != nil {
		text = strings.TrimSpace(text + "\n" + c.hide(err.Error()))
	}
	meta := c.ids(res.Header)
	if meta == nil {
		meta = map[string]string{}
	}
	meta["status"] = fmt.Sprint(res.StatusCode)
	return c.note(fmt.Sprintf("the request was answered %d %s\n%s", res.StatusCode, http.StatusText(res.StatusCode), text), meta)
}

// unread writes down an answer that nothing could be made of.
func (c *call) unread(res *http.Response, cause error) error {
	text, err := c.words(res)
	if text == "" && err != nil {
		text = c.hide(err.Error())
	}
	return c.note(fmt.Sprintf("the answer could not be read: %s\n%s", c.hide(cause.Error()), text), c.ids(res.Header))
}

// words is the body of an answer as it came, without secrets.
func (c *call) words(res *http.Response) (string, error) {
	came, err := c.came.all()
	if err == errLeft { // enough of an error
		err = nil
	}
	if body, bad := plain(strings.NewReader(string(came)), res); bad == nil {
		if text, bad := io.ReadAll(body); bad == nil {
			return c.hide(string(text)), err
		}
	}
	return c.hide(string(came)), err
}

// note adds words for people after the question: what became of it. They are never
// sent, so the question asked again finds its place.
func (c *call) note(text string, meta map[string]string) error {
	note := []content.Block{content.Note(strings.TrimSpace(text))}
	_, err := c.branch.Append(c.ctx, note, tract.AppendOptions{Author: c.o.Author, Meta: meta, External: true})
	return err
}
