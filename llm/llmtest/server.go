package llmtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Exchange is one request that is expected, and the answer to it.
type Exchange struct {
	Path     string               // of the request; empty: any
	WantJSON string               // what its body has to be equal to as JSON; empty: anything
	Check    func(*Request) error // what else is demanded of it

	Status int               // 0: 200
	Header map[string]string // of the answer; without a content type it is found by looking
	Body   string
	Chunks []string      // in the place of Body: pieces that are sent one by one
	Delay  time.Duration // before the answer begins
	Pace   time.Duration // before each piece but the first
	Cut    bool          // the connection is closed where the answer should go on
}

// Request is what the server was sent.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte
}

// Server plays a script: each request, in the order in which they come, gets the
// answer of the next exchange. One that is not as expected is refused with status
// 422, and so is one too many.
type Server struct {
	http   http.Server
	url    string
	closed chan struct{}

	mu       sync.Mutex
	script   []Exchange
	requests []Request
	faults   []error
}

// maxRequest is how many bytes a request may have.
const maxRequest = 64 << 20

// Serve starts a server on a free port of the loopback interface. Whoever starts
// it closes it.
func Serve(script ...Exchange) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("llmtest: %w", err)
	}
	s := &Server{script: script, url: "http://" + l.Addr().String(), closed: make(chan struct{})}
	s.http = http.Server{Handler: http.HandlerFunc(s.play), ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(l)
	return s, nil
}

// URL returns where the server listens: http://127.0.0.1:PORT.
func (s *Server) URL() string { return s.url }

// Requests returns what was sent so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[:len(s.requests):len(s.requests)]
}

// Err says what was not as the script has it: requests that did not match, came
// too often, or never came. It is nil when all went by the script.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := s.faults[:len(s.faults):len(s.faults)]
	if n := len(s.requests); n < len(s.script) {
		faults = append(faults, fmt.Errorf("llmtest: %d of %d exchanges were asked for", n, len(s.script)))
	}
	return errors.Join(faults...)
}

// Close ends the server and all that it is saying.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	return s.http.Close()
}

// play answers one request.
func (s *Server) play(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	x, err := s.next(Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: body})
	if err != nil {
		var inner, o rawjson.Object
		inner.SetString("message", err.Error())
		o.Set("error", inner.Bytes())
		x = &Exchange{Status: http.StatusUnprocessableEntity, Body: string(o.Bytes())}
	}
	s.answer(w, r, x)
}

// next takes the next exchange of the script, if the request fits it.
func (s *Server) next(r Request) (*Exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	if n >= len(s.script) {
		err := fmt.Errorf("llmtest: request %d: the script has %d exchanges", n+1, len(s.script))
		s.faults = append(s.faults, err)
		return nil, err
	}
	x := &s.script[n]
	if err := x.match(&r); err != nil {
		err = fmt.Errorf("llmtest: request %d: %w", n+1, err)
		s.faults = append(s.faults, err)
		return nil, err
	}
	return x, nil
}

// match tells why a request is not the one that is expected.
func (x *Exchange) match(r *Request) error {
	if x.Path != "" && r.Path != x.Path {
		return fmt.Errorf("path %q, want %q", r.Path, x.Path)
	}
	if x.WantJSON != "" {
		have, err := rawjson.Parse(r.Body)
		if err != nil {
			return fmt.Errorf("body: %w", err)
		}
		want, err := rawjson.Parse([]byte(x.WantJSON))
		if err != nil {
			return fmt.Errorf("what the script wants: %w", err)
		}
		if where := describeDifference("body", have, want); where != "" {
			return errors.New(where)
		}
	}
	if x.Check != nil {
		return x.Check(r)
	}
	return nil
}

// describeDifference says where two values are not equal; empty: nowhere.
func describeDifference(at string, have, want rawjson.Value) string {
	if rawjson.Equal(have, want) {
		return ""
	}
	if have.Kind() == rawjson.KindObject && want.Kind() == rawjson.KindObject {
		for key, value := range want.Members() {
			if where := describeDifference(at+"."+key, have.Get(key), value); where != "" {
				return where
			}
		}
		for key, value := range have.Members() {
			if want.Get(key) == nil {
				return fmt.Sprintf("%s.%s is %s, want none", at, key, value)
			}
		}
	}
	if have.Kind() == rawjson.KindArray && want.Kind() == rawjson.KindArray {
		i := 0
		for value := range want.Elements() {
			if where := describeDifference(fmt.Sprintf("%s[%d]", at, i), have.At(i), value); where != "" {
				return where
			}
			i++
		}
		return fmt.Sprintf("%s has more than %d elements", at, i)
	}
	show := func(v rawjson.Value) string {
		if v == nil {
			return "missing"
		}
		return string(v)
	}
	return fmt.Sprintf("%s is %s, want %s", at, show(have), show(want))
}

// answer says what the exchange has.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, x *Exchange) {
	if !s.pause(r, x.Delay) {
		panic(http.ErrAbortHandler)
	}
	chunks := x.Chunks
	if chunks == nil && x.Body != "" {
		chunks = []string{x.Body}
	}
	if x.Cut && len(chunks) == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentType(strings.Join(chunks[:min(1, len(chunks))], "")))
	for name, value := range x.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(max(x.Status, http.StatusOK))
	flush := http.NewResponseController(w).Flush
	for i, chunk := range chunks {
		if i > 0 && !s.pause(r, x.Pace) {
			panic(http.ErrAbortHandler)
		}
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
		if len(x.Chunks) > 0 || x.Cut {
			flush()
		}
	}
	if x.Cut {
		panic(http.ErrAbortHandler) // the client sees the connection break
	}
}

// pause waits, unless the client or the server goes away.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func contentType(body string) string {
	head := bytes.TrimSpace([]byte(body[:min(len(body), 64)]))
	for _, field := range []string{"data:", "event:", "id:", ":"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return "text/event-stream"
		}
	}
	if bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("[")) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
