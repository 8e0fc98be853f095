package llmtest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Recorder is an [http.RoundTripper] that writes down what goes through it: one
// file for each exchange, which [Load] reads. Secrets are taken out before a byte
// is written: of the headers only a few that are known to hold none are kept, and
// what the others, the query and the bodies have of keys is masked wherever it
// comes up. An answer is read to its end before it is passed on.
type Recorder struct {
	Dir     string            // exists, and is the recorder's own
	Next    http.RoundTripper // does the requests
	Secrets []string          // what else must not be written

	mu sync.Mutex
	n  int
}

// The headers that are kept.
var (
	requestHeaders  = []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Openai-Beta"}
	responseHeaders = []string{"Content-Type", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Request-Id", "X-Should-Retry"}
	secretHeaders   = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}
)

// Masked stands where a secret stood in a recording.
const Masked = "[secret]"

// RoundTrip sends the request on and writes down the exchange. That it could not
// be written is its error.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var asked []byte
	if req.Body != nil {
		var err error
		asked, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	req = req.Clone(req.Context())
	if asked != nil {
		req.Body = io.NopCloser(bytes.NewReader(asked))
	}
	req.Header.Del("Accept-Encoding") // secrets cannot be seen in what is compressed
	res, err := r.Next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	answered, broken := io.ReadAll(res.Body)
	res.Body.Close()
	res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answered), failingReader{broken}))
	if err := r.write(req, asked, res, answered, broken != nil); err != nil {
		return nil, fmt.Errorf("record exchange: %w", err)
	}
	return res, nil
}

// failingReader is the end of a body: an error, if it had one.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

func (r *Recorder) write(req *http.Request, asked []byte, res *http.Response, answered []byte, cut bool) error {
	if coding := res.Header.Get("Content-Encoding"); coding != "" {
		return fmt.Errorf("the answer is encoded: %q", coding)
	}
	hide := masker(slices.Concat(r.Secrets, lookup(req, res)))
	var o, q, a rawjson.Object
	q.SetString("method", req.Method)
	q.SetString("path", hide.mask(req.URL.Path))
	if query := hide.query(req.URL.Query()); query != "" {
		q.SetString("query", query)
	}
	q.Set("header", hide.header(req.Header, requestHeaders))
	hide.body(&q, asked)
	a.SetInt("status", int64(res.StatusCode))
	a.Set("header", hide.header(res.Header, responseHeaders))
	hide.body(&a, answered)
	if cut {
		a.SetBool("cut", true)
	}
	o.Set("request", q.Bytes())
	o.Set("response", a.Bytes())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return os.WriteFile(filepath.Join(r.Dir, fmt.Sprintf("%04d.json", r.n)), append(o.Bytes(), '\n'), 0o600)
}

// Load reads what a [Recorder] wrote, in order, as a script. Each request has to
// be the recorded one again, as JSON where it is JSON.
func Load(dir string) ([]Exchange, error) {
	names, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	if err != nil {
		return nil, fmt.Errorf("load recording: %w", err)
	}
	slices.Sort(names)
	var script []Exchange
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("load recording: %w", err)
		}
		v, err := rawjson.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("load recording %s: %w", name, err)
		}
		asked, answered := v.Get("request"), v.Get("response")
		status, _ := answered.Get("status").Int()
		x := Exchange{
			Path: asked.Get("path").Text(), Status: int(status), Header: map[string]string{},
			Body: loadBody(answered), Cut: answered.Get("cut").Bool(),
		}
		for key, value := range answered.Get("header").Members() {
			x.Header[key] = value.Text()
		}
		if body := loadBody(asked); body != "" {
			if _, err := rawjson.Parse([]byte(body)); err == nil {
				x.WantJSON = body
			}
		}
		script = append(script, x)
	}
	return script, nil
}

func loadBody(v rawjson.Value) string {
	if coded := v.Get("body_base64"); coded != nil {
		b, _ := base64.StdEncoding.DecodeString(coded.Text()) // what is not base64 loads as nothing, and fails to match
		return string(b)
	}
	return v.Get("body").Text()
}

// lookup returns the secrets that an exchange carries.
func lookup(req *http.Request, res *http.Response) (list []string) {
	for _, name := range secretHeaders {
		for _, value := range req.Header.Values(name) {
			list = append(list, value)
			if _, token, ok := strings.Cut(value, " "); ok {
				list = append(list, token)
			}
		}
	}
	for _, c := range slices.Concat(req.Cookies(), res.Cookies()) {
		list = append(list, c.Value)
	}
	if password, ok := req.URL.User.Password(); ok {
		list = append(list, password)
	}
	for name, values := range req.URL.Query() {
		if secretName().MatchString(name) {
			list = append(list, values...)
		}
	}
	return list
}

var (
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)key|token|secret|sig|password|auth`)
	})
	// secretMember finds members of JSON whose name says that they hold a secret.
	secretMember = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)("(?:[a-z_-]*api[_-]?key|authorization|[a-z_-]*secret|password|access_token|refresh_token)"\s*:\s*")(?:[^"\\]|\\.)*"`)
	})
	// secretShape finds keys by how vendors make them.
	secretShape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{30,}|ghp_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16})|(?i:bearer )[A-Za-z0-9._~+/-]{16,}=*`)
	})
)

// masker is secrets, to be masked wherever they come up.
type masker []string

// minSecretLength is how many bytes a secret has: shorter ones are found everywhere.
const minSecretLength = 4

func (m masker) mask(text string) string {
	for _, secret := range m {
		if len(secret) < minSecretLength {
			continue
		}
		quoted := rawjson.AppendString(nil, secret)
		for _, spelled := range []string{secret, url.QueryEscape(secret), string(quoted[1 : len(quoted)-1])} {
			text = strings.ReplaceAll(text, spelled, Masked)
		}
	}
	text = secretMember().ReplaceAllString(text, "${1}"+Masked+`"`)
	return secretShape().ReplaceAllString(text, Masked)
}

// query returns the query with its secrets masked.
func (m masker) query(q url.Values) string {
	for name, values := range q {
		for i := range values {
			if values[i] = m.mask(values[i]); secretName().MatchString(name) {
				values[i] = Masked
			}
		}
	}
	return q.Encode()
}

func (m masker) header(h http.Header, keep []string) rawjson.Value {
	var o rawjson.Object
	for _, name := range keep {
		if value := h.Get(name); value != "" {
			o.SetString(name, m.mask(value))
		}
	}
	return o.Bytes()
}

// body adds a body: as text where it is text.
func (m masker) body(o *rawjson.Object, body []byte) {
	text := m.mask(string(body))
	if utf8.ValidString(text) {
		o.SetString("body", text)
		return
	}
	o.SetString("body_base64", base64.StdEncoding.EncodeToString([]byte(text)))
}
