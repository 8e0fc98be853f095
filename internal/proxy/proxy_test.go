package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// upstreams returns the options of a proxy whose named providers are all one server.
func upstreams(t *testing.T, server *httptest.Server, names ...string) Options {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Upstreams: map[string]*url.URL{}, Transport: NewTransport(nil)}
	for _, name := range names {
		o.Upstreams[name] = u
	}
	return o
}

// serve starts a server that ends with the test.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func do(t *testing.T, method, url string, header http.Header, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was read to its end
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestRequestsGoToTheProviderOfTheirPath(t *testing.T) {
	names := []string{"anthropic", "openai", "google", "team"}
	seen := make(chan string, 1)
	o := Options{Upstreams: map[string]*url.URL{}, Transport: NewTransport(nil)}
	for _, name := range names {
		server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- name + " " + r.Method + " " + r.RequestURI }))
		o.Upstreams[name], _ = url.Parse(server.URL)
	}
	o.Upstreams["team"].Path = "/gateway/v1"
	front := serve(t, New(o))
	for _, c := range []struct{ method, uri, header, want string }{
		{"POST", "/v1/messages?beta=true", "", "anthropic POST /v1/messages?beta=true"},
		{"POST", "/v1/messages/count_tokens", "", "anthropic POST /v1/messages/count_tokens"},
		{"POST", "/v1/responses", "", "openai POST /v1/responses"},
		{"POST", "/v1/chat/completions", "", "openai POST /v1/chat/completions"},
		{"GET", "/v1/models", "", "openai GET /v1/models"},
		{"GET", "/v1/models", "Anthropic-Version", "anthropic GET /v1/models"},
		{"POST", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "", "google POST /v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"},
		{"HEAD", "/", "", "openai HEAD /"},
		{"POST", "/p/team/chat/completions", "", "team POST /gateway/v1/chat/completions"},
		{"POST", "/p/team/gateway/v1/chat/completions", "", "team POST /gateway/v1/chat/completions"},
		{"POST", "/p/openai/v2/responses", "", "openai POST /v2/responses"},
		{"POST", "/p/openai/v1/files%2Fa%20b?x=1;y=%zz", "", "openai POST /v1/files%2Fa%20b?x=1;y=%zz"},
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set(c.header, "2023-06-01")
		}
		if res, body := do(t, c.method, front.URL+c.uri, header, ""); res.StatusCode != 200 {
			t.Errorf("%s %s: %d %s", c.method, c.uri, res.StatusCode, body)
			continue
		}
		if got := <-seen; got != c.want {
			t.Errorf("%s %s went to %q, want %q", c.method, c.uri, got, c.want)
		}
	}
	if res, _ := do(t, "POST", front.URL+"/p/nobody/v1/responses", nil, ""); res.StatusCode != 404 {
		t.Errorf("unknown provider: %d, want 404", res.StatusCode)
	}
}

func TestBytesAndHeadersPassUnchanged(t *testing.T) {
	var sent bytes.Buffer
	z := gzip.NewWriter(&sent)
	_, _ = z.Write([]byte(`{"model":"m"}`))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var header http.Header
	var host string
	var got []byte
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, host = r.Header.Clone(), r.Host
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Retry-After", "7")
		w.Header()["Request-Id"] = []string{"a", "b"}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(sent.Bytes())
	}))
	front := serve(t, New(upstreams(t, upstream, "openai")))
	res, body := do(t, "POST", front.URL+"/v1/responses", http.Header{
		"Authorization": {"Bearer key"}, "Content-Encoding": {"gzip"}, "X-Custom": {"1", "2"}, "User-Agent": {"agent/1"}, "Accept-Encoding": {"br"}, "X-Forwarded-For": {"10.0.0.1"},
	}, sent.String())
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || len(res.Header["Request-Id"]) != 2 || res.Header.Get("Content-Encoding") != "gzip" || body != sent.String() {
		t.Errorf("response %d %v, %d bytes", res.StatusCode, res.Header, len(body))
	}
	if !bytes.Equal(got, sent.Bytes()) || "http://"+host != upstream.URL {
		t.Errorf("the provider got %d bytes for host %q", len(got), host)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer key", "X-Custom": "1,2", "User-Agent": "agent/1", "Accept-Encoding": "br", "Content-Encoding": "gzip", "X-Forwarded-For": "10.0.0.1",
	} {
		if got := strings.Join(header[name], ","); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	for name := range header {
		if name != "Content-Length" && !strings.Contains("Authorization X-Custom User-Agent Accept-Encoding Content-Encoding X-Forwarded-For", name) {
			t.Errorf("the proxy added header %s", name)
		}
	}
}

func TestEachWriteIsFlushed(t *testing.T) {
	next := make(chan struct{})
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n")
			w.(http.Flusher).Flush()
			<-next // until the client has read the event
		}
	}))
	front := serve(t, New(upstreams(t, upstream, "anthropic")))
	res, err := http.Post(front.URL+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was read to its end
	events := bufio.NewReader(res.Body)
	for range 3 {
		if line, err := events.ReadString('\n'); err != nil || line != "data: x\n" {
			t.Fatalf("%q, %v", line, err)
		}
		next <- struct{}{}
	}
}

func TestCancellationReachesTheProvider(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	front := serve(t, New(upstreams(t, upstream, "anthropic")))
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", front.URL+"/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-began; cancel() }()
	if res, err := http.DefaultClient.Do(req); err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close() // it was cut
		if err == nil {
			t.Error("the response ended without an error")
		}
	}
	<-ended
}

func TestForeignCallersAreRefused(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	open := upstreams(t, upstream, "anthropic", "openai", "google")
	guarded := open
	guarded.Token = "secret"
	for _, c := range []struct {
		what   string
		o      Options
		path   string
		header http.Header
		status int
	}{
		{"a program", open, "/v1/messages", nil, 200},
		{"a page of this machine", open, "/v1/messages", http.Header{"Origin": {"http://localhost:3000"}}, 200},
		{"a foreign page", open, "/v1/messages", http.Header{"Origin": {"https://example.org"}}, 403},
		{"a page without an origin of its own", open, "/v1/messages", http.Header{"Origin": {"null"}}, 403},
		{"a rebound name", open, "/v1/messages", http.Header{"Host": {"example.org"}}, 403},
		{"no token", guarded, "/v1/messages", nil, 401},
		{"a wrong token", guarded, "/v1/messages", http.Header{"X-Tract-Token": {"secre"}}, 401},
		{"the token", guarded, "/v1/messages", http.Header{"X-Tract-Token": {"secret"}, "Host": {"proxy.lan"}}, 200},
		{"the token in the path", guarded, "/t/secret/v1/messages", nil, 200},
		{"a web socket", open, "/v1/responses", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, 426},
	} {
		if res, body := do(t, "POST", serve(t, New(c.o)).URL+c.path, c.header, "{}"); res.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", c.what, res.StatusCode, body, c.status)
		}
	}
}

func TestErrorsHaveTheFormOfTheDialect(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	p := New(upstreams(t, gone, "anthropic", "openai", "google"))
	front := serve(t, p)
	for path, member := range map[string]string{"/v1/messages": `"type":"error"`, "/v1/responses": `"type":"proxy_error"`, "/v1beta/models/m:generateContent": `"status":"UNAVAILABLE"`} {
		res, body := do(t, "POST", front.URL+path, http.Header{"Authorization": {"Bearer sk-secret"}}, "{}")
		if res.StatusCode != 502 || !json.Valid([]byte(body)) || !strings.Contains(body, member) || strings.Contains(body, "sk-secret") {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	if at, text := p.LastError(); at.IsZero() || text == "" {
		t.Errorf("last error %q at %v", text, at)
	}
	if p.IsVendor("anthropic") || !New(Options{}).IsVendor("anthropic") {
		t.Error("IsVendor confuses an upstream with the vendor's own host")
	}
}

func TestACutResponseIsCutForTheClient(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: half\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	front := serve(t, New(upstreams(t, upstream, "anthropic")))
	res, err := http.Post(front.URL+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was cut
	if got, err := io.ReadAll(res.Body); err == nil || string(got) != "data: half\n" {
		t.Errorf("%q, %v; want the half and an error", got, err)
	}
}

// TestResponsesThatBeginEarlyArriveWhole: a server that begins its response before the proxy has
// seen the end of the request body must not lose the connection.
func TestResponsesThatBeginEarlyArriveWhole(t *testing.T) {
	const events = 20
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		for range events {
			_, _ = io.WriteString(w, "data: x\n")
			w.(http.Flusher).Flush()
		}
	}))
	front := serve(t, New(upstreams(t, upstream, "anthropic")))
	for n := range 300 {
		if _, body := do(t, "POST", front.URL+"/v1/messages", nil, "{}"); body != strings.Repeat("data: x\n", events) {
			t.Fatalf("response %d has %d bytes", n, len(body))
		}
	}
}
