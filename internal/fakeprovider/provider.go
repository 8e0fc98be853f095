package fakeprovider

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract/internal/contentcoding"
)

// Options configure a [Provider].
type Options struct {
	Dir     string        // where the client works, for tools that want absolute paths
	Pause   time.Duration // between the writes of a stream
	CallIDs bool          // Gemini calls have ids, which the API allows and leaves out mostly
}

// Provider is the http.Handler. Any number of goroutines may use it.
type Provider struct {
	o Options

	mu    sync.Mutex
	count int
	tries map[string]int // of a step, by key
	sent  [][]byte       // body of each response, in the order of the requests
}

// New returns a provider.
func New(o Options) *Provider { return &Provider{o: o, tries: map[string]int{}} }

// Sent returns the bodies of all responses to model requests so far, as far as they were sent.
func (p *Provider) Sent() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.sent...)
}

func (p *Provider) path(name string) string { return filepath.Join(p.o.Dir, name) }

// dialects are the ends of the paths that models are asked at.
var dialects = []struct {
	end    string
	d      dialect
	stream bool
}{
	{"/v1/messages", messagesAPI, false},
	{"/chat/completions", chatAPI, false},
	{"/responses", responsesAPI, false},
	{":streamGenerateContent", geminiAPI, true},
	{":generateContent", geminiAPI, false},
}

// ServeHTTP answers a request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := readBody(req)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	path := req.URL.Path
	for _, known := range dialects {
		if strings.HasSuffix(path, known.end) {
			r, err := parseRequest(known.d, body)
			if err != nil {
				fail(w, http.StatusBadRequest, "bad JSON")
				return
			}
			if known.d == geminiAPI {
				r.stream = known.stream
				r.model, _, _ = strings.Cut(path[strings.LastIndex(path, "/")+1:], ":")
			}
			p.answer(w, r)
			return
		}
	}
	p.other(w, req, len(body))
}

// other answers requests that are not to a model.
func (p *Provider) other(w http.ResponseWriter, req *http.Request, size int) {
	w.Header().Set("Content-Type", "application/json")
	switch path := req.URL.Path; {
	case req.Header.Get("Upgrade") != "":
		fail(w, http.StatusUpgradeRequired, "no web socket here")
	case req.Method == http.MethodGet && strings.HasSuffix(path, "/models"):
		_, _ = io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
	case strings.HasSuffix(path, "/count_tokens"):
		_, _ = fmt.Fprintf(w, `{"input_tokens":%d}`, size/4)
	case strings.HasSuffix(path, ":countTokens"):
		_, _ = fmt.Fprintf(w, `{"totalTokens":%d}`, size/4)
	case strings.HasSuffix(path, "/responses/compact"):
		_, _ = fmt.Fprintf(w, `{"output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"A summary of before."}]},{"type":"compaction","encrypted_content":%q}]}`, seal("compact"))
	default:
		fail(w, http.StatusNotFound, "not found")
	}
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"error","message":%q}}`, message)
}

// readBody reads a body that may be compressed.
func readBody(req *http.Request) ([]byte, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return contentcoding.Decode(body, req.Header.Get("Content-Encoding"), 64<<20)
}

// A response is what the model says in one turn.
type response struct {
	id        string // unique, of letters and digits
	number    int
	model     string
	reasoning string
	text      string
	calls     []toolCall
	tokens    int
}

type toolCall struct {
	id, name, space string
	arguments       object
}

// answer answers a model request.
func (p *Provider) answer(w http.ResponseWriter, r *request) {
	s, key := r.turn()
	p.mu.Lock()
	number := p.count
	p.count++
	p.tries[key]++
	first := p.tries[key] == 1
	p.sent = append(p.sent, nil)
	p.mu.Unlock()
	id := digest("request", fmt.Sprint(number))
	w.Header().Set("Request-Id", "req_"+id)
	w.Header().Set("X-Request-Id", "req_"+id)
	if s.refuse != 0 && first {
		w.Header().Set("Retry-After", "1")
		fail(w, s.refuse, "come back later")
		return
	}
	out := &writer{w: w, pause: p.o.Pause, cut: s.cut && first}
	if s.slow {
		out.pause = 150 * time.Millisecond
	}
	defer func() {
		p.mu.Lock()
		p.sent[number] = out.sent.Bytes()
		p.mu.Unlock()
	}()
	a := p.response(r, s, number, id)
	switch r.dialect {
	case messagesAPI:
		writeMessages(out, r, a)
	case responsesAPI:
		writeResponses(out, r, a)
	case chatAPI:
		writeChat(out, r, a)
	case geminiAPI:
		writeGemini(out, r, a, p.o.CallIDs)
	}
}

// response makes the response of a step.
func (p *Provider) response(r *request, s step, number int, id string) response {
	a := response{id: id, number: number, model: r.model, text: s.text, tokens: s.tokens}
	if a.tokens == 0 {
		a.tokens = r.size / 4
	}
	if r.reasons {
		a.reasoning = fmt.Sprintf("The user wants something done. I choose what comes next, in answer number %d.", number)
	}
	for i, c := range s.calls {
		name := r.tool(c.kind)
		if name == "" {
			a.text += fmt.Sprintf("(I have no tool to %s.)", c.kind)
			continue
		}
		a.calls = append(a.calls, toolCall{id: digest(id, fmt.Sprint(i)), name: name, space: r.spaces[name], arguments: p.arguments(r, name, c)})
	}
	return a
}

// writer writes a response in pieces, and remembers it.
type writer struct {
	w     http.ResponseWriter
	pause time.Duration
	cut   bool
	n     int
	sent  bytes.Buffer
}

// write sends a piece at once. A stream that is to be cut ends after its ninth piece.
func (o *writer) write(s string) {
	time.Sleep(o.pause)
	o.sent.WriteString(s)
	_, _ = io.WriteString(o.w, s) // the client may be gone
	_ = http.NewResponseController(o.w).Flush()
	if o.n++; o.cut && o.n == 9 {
		panic(http.ErrAbortHandler)
	}
}

// json sends a whole response.
func (o *writer) json(v any) {
	o.w.Header().Set("Content-Type", "application/json")
	o.write(encode(v))
}

// begin begins a stream of events.
func (o *writer) begin() { o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8") }

// event sends an event, with its type as the event's name if named.
func (o *writer) event(v object, named bool) {
	s := "data: " + encode(v) + "\n\n"
	if named {
		s = fmt.Sprintf("event: %v\n", v["type"]) + s
	}
	o.write(s)
}

// encode encodes JSON without HTML escapes.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // maps, lists and strings can always be encoded
	return strings.TrimSpace(b.String())
}

// pieces cuts a text as a stream does.
func pieces(s string) (list []string) {
	for len(s) > 0 {
		n := min(len(s), 17)
		list, s = append(list, s[:n]), s[n:]
	}
	return list
}

// digest returns 24 hexadecimal digits that stand for some strings.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// seal returns what looks like a signature or an encrypted payload.
func seal(of string) string {
	var all []byte
	for i := range 8 {
		sum := sha256.Sum256([]byte(of + fmt.Sprint(i)))
		all = append(all, sum[:]...)
	}
	return base64.StdEncoding.EncodeToString(all[:252])
}
