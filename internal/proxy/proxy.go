// Package proxy forwards the requests of agents to the providers of their models, unchanged,
// through an http.RoundTripper that may record them. [New] returns the handler of one loopback
// port that serves all providers; route.go decides which upstream a request goes to.
//
// Bytes pass as they come: bodies and headers are those of the client and of the provider,
// hop-by-hop headers aside, no header is added, compression is left as it is, and every write
// is flushed. The handler has no time limits of its own, and the end of a client's request
// cancels the upstream request. Keys are in the headers that pass through; the proxy stores
// nothing.
package proxy

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/llm/providers"
)

// Options configure a [Proxy].
type Options struct {
	// Upstreams are the base URLs of providers by name. They replace those of the vendor
	// table, and add to it.
	Upstreams map[string]*url.URL

	// Default is the provider of requests whose path does not tell one, such as HEAD /.
	// Empty: the headers decide, see [Proxy].
	Default string

	// Transport sends the requests, and may record them.
	Transport http.RoundTripper

	// Token must be in the X-Tract-Token header or in the path (/t/TOKEN/...) of each
	// request. Empty: no token is asked for, and only requests to loopback names pass.
	Token string
}

// Proxy is an http.Handler that forwards requests. Any number of goroutines may use it.
type Proxy struct {
	o       Options
	forward *httputil.ReverseProxy

	running atomic.Int64
	mu      sync.Mutex
	last    string // the newest upstream error
	lastAt  time.Time
}

// New returns a proxy.
func New(o Options) *Proxy {
	p := &Proxy{o: o}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       addressToTarget,
		Transport:     o.Transport,
		FlushInterval: -1, // each write at once
		ErrorHandler:  p.answerUpstreamError,
		ErrorLog:      log.New(io.Discard, "", 0), // a cut response is seen by the client
	}
	return p
}

// NewTransport returns a transport that leaves the compression of bodies to client and
// provider. proxyFor chooses an outgoing proxy as in http.Transport.Proxy; nil: none.
func NewTransport(proxyFor func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:               proxyFor,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
	}
}

// Running returns the number of requests that are being forwarded.
func (p *Proxy) Running() int64 { return p.running.Load() }

// LastError returns the time and the text of the newest error of an upstream; the zero time:
// there was none.
func (p *Proxy) LastError() (at time.Time, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastAt, p.last
}

// ServeHTTP forwards a request, or refuses it with a JSON error in the form of the dialect
// that the path belongs to: as [Proxy.Allows], and with 426 for a web socket, 404 for an
// unknown provider, 502 when the upstream fails.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !p.Allows(w, req) {
		return
	}
	path, _ := p.checkToken(req)
	if req.Header.Get("Upgrade") != "" && strings.Contains(strings.ToLower(req.Header.Get("Connection")), "upgrade") {
		w.Header().Set("Upgrade", "HTTP/1.1")
		refuse(w, path, http.StatusUpgradeRequired, "this proxy does not relay web sockets; send the request over HTTP")
		return
	}
	target, ok := p.route(req, path)
	if !ok {
		refuse(w, path, http.StatusNotFound, "unknown provider in "+path+": want /p/NAME with the name of a vendor or of a configured upstream")
		return
	}
	p.running.Add(1)
	defer p.running.Add(-1)
	if req.ContentLength > 0 {
		// The body ends after its last byte without another read: net/http closes it when the response
		// begins, and a transport that then asks for more would give up the exchange.
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(req.Body, req.ContentLength), req.Body}
	}
	p.forward.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), targetKey{}, target)))
}

// Allows reports whether a request may use the proxy. Otherwise it refuses the request: with
// 401 when the token is missing or wrong, with 403 when the request comes from a web page, or
// names a host that is not this machine.
func (p *Proxy) Allows(w http.ResponseWriter, req *http.Request) bool {
	path, ok := p.checkToken(req)
	if !ok {
		refuse(w, path, http.StatusUnauthorized, "this proxy needs its token in the X-Tract-Token header or in the path, as /t/TOKEN")
		return false
	}
	if !p.trusted(req) {
		refuse(w, path, http.StatusForbidden, "this proxy answers programs on this machine only, not web pages or foreign host names")
		return false
	}
	return true
}

// IsVendor reports whether the upstream of a vendor is the vendor's own host.
func (p *Proxy) IsVendor(name string) bool {
	profile, known := providers.Lookup(name)
	t, ok := p.target(name, "/")
	own, err := url.Parse(profile.BaseURL)
	return known && ok && err == nil && strings.EqualFold(t.URL.Host, own.Host)
}

// checkToken checks the token, and returns the escaped path without it.
func (p *Proxy) checkToken(req *http.Request) (pathWithoutToken string, ok bool) {
	path := req.URL.EscapedPath()
	given := req.Header.Get("X-Tract-Token")
	if rest, found := strings.CutPrefix(path, "/t/"); found {
		given, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	if p.o.Token == "" {
		return path, true
	}
	return path, subtle.ConstantTimeCompare([]byte(given), []byte(p.o.Token)) == 1
}

// trusted reports whether a request comes from a program, and to a name of this machine. A web
// page sends an Origin, and a page that has rebound its own name to this address sends that
// name as the host. With a token any host name will do.
func (p *Proxy) trusted(req *http.Request) bool {
	if origin := req.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !isLoopback(u.Hostname()) {
			return false
		}
	}
	host := url.URL{Host: req.Host}
	return p.o.Token != "" || isLoopback(host.Hostname())
}

// isLoopback reports whether a host name is one of this machine's loopback names.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// addressToTarget addresses a request to its target. It adds no header: ReverseProxy has removed the
// hop-by-hop headers, and the forwarding headers that a client sent are restored.
func addressToTarget(r *httputil.ProxyRequest) {
	target := TargetOf(r.In.Context())
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.URL.Scheme, target.URL.Host, target.URL.Host
	r.Out.URL.Path, r.Out.URL.RawPath = target.URL.Path, target.URL.RawPath
	r.Out.Header.Del("X-Tract-Token")
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, sent := r.In.Header[name]; sent {
			r.Out.Header[name] = values
		}
	}
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, not cleaned
}

// answerUpstreamError answers a request whose upstream could not be reached or broke off before
// it answered. The error of a client that went away is not reported.
func (p *Proxy) answerUpstreamError(w http.ResponseWriter, req *http.Request, err error) {
	if req.Context().Err() != nil {
		return
	}
	p.mu.Lock()
	p.last, p.lastAt = err.Error(), time.Now()
	p.mu.Unlock()
	var operation *net.OpError
	message := "the provider did not answer"
	if errors.As(err, &operation) {
		message = "cannot reach " + TargetOf(req.Context()).URL.Host + ": " + operation.Err.Error()
	}
	refuse(w, req.URL.Path, http.StatusBadGateway, message)
}

// refuse writes an error in the form of the dialect that a path belongs to.
func refuse(w http.ResponseWriter, path string, status int, message string) {
	message = "tract proxy: " + message
	var body any
	switch vendorOf(path) {
	case "anthropic":
		body = map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": message}}
	case "google":
		body = map[string]any{"error": map[string]any{"code": status, "message": message, "status": "UNAVAILABLE"}}
	default:
		body = map[string]any{"error": map[string]any{"message": message, "type": "proxy_error", "code": nil, "param": nil}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
